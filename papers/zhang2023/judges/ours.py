"""Claims 23 to 28: ours, not the paper's. They ask what the paper's tables leave open."""

import numpy as np
import pandas as pd

from papers.zhang2023.winners import (
    DATASETS,
    METHODS,
    NAMES,
    POLICIES,
    QUALITY,
    RANKING,
    REMEDIES,
    WORLDS,
    cells,
    cross,
    curve,
    won,
)
from twotowers.claims.claims import OURS, Claims, Measured, seed_means
from twotowers.claims.conditions import above, at_most, below, shown, some, written
from twotowers.claims.statistics import mean_interval, select

CLAIMS = Claims(origin=OURS, names=NAMES)

# Claim 23: the positions at which examination is compared.
SEEN = tuple(range(2, 11))
# Claims 24 to 26: a loss, or a gain, in nDCG@5 that counts.
GAP = 0.01
# Claim 27: what a remedy's loss on clicks may be above PAL's.
CALM = 0.02
RUNAWAY = "the loss on test clicks less PAL's, of each seed, under Oracle or at Random,"

IN = {" ".join(name.split()): {"world": world} for world, name in WORLDS.items()}


def examination_better(results: pd.DataFrame, dataset: str) -> Measured:
    """Mean |estimate + ln k| over positions 2 to 10 and over seeds."""
    over = {"seed": None, "mixing_weight": list(POLICIES), "position": list(SEEN)}
    errors = {}
    for method in ("pal", *REMEDIES):
        setting = f"{dataset}-{method}"
        rows = won(results, setting, "ndcg")
        bias = seed_means(rows, over, setting=setting, metric="position_bias").unstack()
        by_seed = (bias + np.log(SEEN)).abs().mean(axis="columns")
        errors[method] = by_seed.groupby("mixing_weight").mean()
    strong = pd.DataFrame(errors).loc[[1.0, 0.8, 0.6]]
    return [*(strong[method] - strong["pal"] for method in REMEDIES), strong]


# Each beside the figure of its data set.
for id, item, dataset in [("23a", "truth_yahoo", "yahoo"), ("23b", "truth", "mslr")]:
    CLAIMS.add(
        id, item, "ours",
        "Under strong policies both remedies estimate examination at ranks 2 to 10 better than PAL "
        f"({DATASETS[dataset]})",
        *[
            below(f"the error of {METHODS[method]} less that of PAL, under Oracle, L1 and L2,", 0)
            for method in REMEDIES
        ],
        shown("errors"),
        dataset=dataset,
    )(examination_better)  # fmt: skip


@CLAIMS.add(
    "24", "table1x", "ours; 001 against 000",
    "PAL loses where the policy knows labels, not where an equally good policy ranks by features",
    at_most("nDCG@5 of PAL at Random less that under the deep ranker", GAP),
    above("the loss under labels mixed to the same nDCG", 0),
    shown("nDCG@5 of PAL at Random, under the deep ranker and under mixed labels", digits=4),
    shown("nDCG@10 of the deep ranker"),
    shown("nDCG@5 that such labels cost beyond what the ranker costs, with a 95 % interval"),
    parts=IN,
)  # fmt: skip
def features_harmless(results: pd.DataFrame, world: str) -> Measured:
    rows = cross(results)
    rows = select(rows, world=world, ranker=["label", "deep"], method="pal")
    random, full, mixed, quality = _equally_good(rows, world)
    of_seeds = (_equally_good(own, world) for _, own in rows.groupby("seed"))
    beyond = [ranker - labels for _, ranker, labels, _ in of_seeds]
    return random - full, random - mixed, [random, full, mixed], quality, _with_interval(beyond)


def _equally_good(rows: pd.DataFrame, world: str) -> tuple[float, float, float, float]:
    """PAL's nDCG@5 at Random, under the deep ranker and under labels mixed to the same nDCG@10,
    and this nDCG@10."""
    label, deep = (curve(rows, world, ranker, "pal") for ranker in ("label", "deep"))
    label = label.sort_values(QUALITY)
    full = deep.loc[1.0]
    mixed = np.interp(full[QUALITY], label[QUALITY], label[RANKING])
    return label[RANKING].loc[0.0], full[RANKING], mixed, full[QUALITY]


def _with_interval(values: list[float]) -> str:
    """A mean over seeds with its interval; one seed has none."""
    mean = np.mean(values)
    if len(values) < 2:
        return written(mean)
    ends = mean_interval(mean, np.std(values, ddof=1), len(values))
    return f"{written(mean)} ({' to '.join(written(end) for end in ends)})"


@CLAIMS.add(
    "25", "table1x", "ours; 001 against 000",
    "The remedies still help where the policy ranks by features",
    above("nDCG@5 of the better of both less that of PAL, under the deep ranker", GAP),
    shown("nDCG@5", digits=4),
    parts=IN,
)  # fmt: skip
def remedies_still_help(results: pd.DataFrame, world: str) -> Measured:
    rows = cross(results)
    methods = ("pal", *REMEDIES)
    own = {name: curve(rows, world, "deep", name)[RANKING].loc[1.0] for name in methods}
    measured = pd.Series(own).rename(METHODS)
    return measured.drop(METHODS["pal"]).max() - measured[METHODS["pal"]], measured


@CLAIMS.add(
    "27", "gradrev_start", "ours",
    "Where its weight starts decides whether an adversary of the observation score runs away",
    at_most(f"{RUNAWAY} from a weight of 0", CALM),
    some(above(f"{RUNAWAY} from a weight of -2", CALM)),
    gated=False,
)  # fmt: skip
def runs_away(results: pd.DataFrame) -> Measured:
    pal = losses(results, "mslr-pal")
    return [
        losses(results, setting) - pal
        for setting in ("mslr-gradrev-at-0", "mslr-gradrev-at-minus-2")
    ]


def losses(results: pd.DataFrame, setting: str) -> pd.Series:
    over = {"seed": None, "mixing_weight": [1, 0]}
    return seed_means(results, over, setting=setting, metric="nll")


@CLAIMS.add(
    "26", "truth", "ours",
    "With the user's own model in place of a sum of logits, PAL does not fall",
    at_most("nDCG@5 at Random less that at Oracle", GAP),
    shown("nDCG@5 with a sum of logits, with a product, and of DLA", digits=4),
    also=["table1"],
)  # fmt: skip
def product_does_not_fall(results: pd.DataFrame) -> Measured:
    values = cells(results, "mslr", ["pal", "product", "dla"])
    return values["product"][0.0] - values["product"][1.0], values.T


@CLAIMS.add(
    "28", "noise", "ours",
    "Where a policy's noise is drawn anew in each session, PAL does not fall",
    at_most("nDCG@5 of PAL at Random less that under L1, L2 and L3, all with such noise", GAP),
    shown("nDCG@5", digits=4),
)  # fmt: skip
def noise_in_sessions(results: pd.DataFrame) -> Measured:
    weights = {"mixing_weight": [0.8, 0.6, 0.2, 0.0]}
    noisy = seed_means(results, weights, setting="yahoo-pal-noisy", metric="ndcg@5")
    return noisy[0.0] - noisy[[0.8, 0.6, 0.2]], noisy

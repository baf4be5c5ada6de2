"""Claims 17 to 22 and 34: Section 4, at exact optima of small tables; Postulate 4 on our data."""

from collections.abc import Sequence

import pandas as pd

from papers.zhang2023.winners import BASELINES, NAMES, POLICIES, REMEDIES, TUNED
from twotowers.claims.claims import OURS, Claims, Measured, rows_of, seed_means
from twotowers.claims.conditions import at_least, at_most, below, shown
from twotowers.claims.statistics import over_seeds

CLAIMS = Claims(names=NAMES)

# What a loss may lie above its least value at an optimum: the optimisers' own error.
OPTIMAL = 1e-6
# Claim 20: the largest slope at which gradient reversal has come to rest.
RESTS = 1e-6
# Claim 21: nDCG@5 that counts as lost.
LOST = 0.002

STRICT = ["connected", "two blocks", "oracle"]
"""The supports of the study that are strict subsets of features x positions."""
# Claim 34: what a factor may differ by between cells, where it is fitted.
ALIKE = 1e-4


def _values(results: pd.DataFrame, *supports: str, **where) -> pd.Series:
    """Means over seeds by support, and by rate or scale where there is one."""
    rows = rows_of(results, setting="theory", support=[*supports], **where)
    by = ["support", *(["at"] if rows["at"].notna().any() else [])]
    return over_seeds(rows, by).set_index(by)["value"]


@CLAIMS.add(
    "17", "theory", "Theorem 2",
    "On a strict subset of features and positions, where there is a second optimum there is a "
    "continuum of them",
    at_least("the number of directions in which parameters can leave an optimum at equal loss, on "
             "every log that has a second optimum,", 1),
    shown("least curvature on one line"), shown("fits that end at the truth, and at its reverse"),
    chance=False,
)  # fmt: skip
def continuum(results: pd.DataFrame) -> Measured:
    """With a parameter per feature and position it holds; on one line it does not."""
    where = {"part": "theorem2"}
    ends = [
        _values(results, "one line", metric=f"ends_at_{name}", **where).iloc[0]
        for name in ("truth", "swapped")
    ]
    least = _values(results, "one line", metric="least_curvature", **where).iloc[0]
    return _values(results, *STRICT, "one line", metric="dimension", **where), least, ends


@CLAIMS.add(
    "18", "theory", "Proposition 3", "Every optimum other than the truth ranks worse",
    below("nDCG of another optimum, with two documents, each at a position of its own,", 1),
    shown("the share of other optima that put a label above a higher one"),
    chance=False,
)  # fmt: skip
def others_rank_worse(results: pd.DataFrame) -> Measured:
    ndcg = _values(results, "two documents", part="theorem2", metric="ndcg")
    return ndcg, _values(results, *STRICT, part="theorem2", metric="share_worse")


@CLAIMS.add(
    "34", "theory", "Lemma 7, Eq. 12",
    "An optimum under dropout of a product is an optimum without it, but for a constant factor",
    at_most("what the factor differs by between cells, at every rate,", ALIKE), shown("the factor"),
    chance=False, part="lemma7", metrics=("spread", "c_over_p"), supports=["mean prediction"],
)  # fmt: skip
@CLAIMS.add(
    "19", "theory", "Lemma 7, carried over to the model that is trained, Eq. 10",
    "An optimum under dropout of a sum of logits is an optimum without it",
    at_most("the loss without dropout above its least value, at every rate and support,", OPTIMAL),
    chance=False, origin=OURS, part="lemma7", metrics=["excess_loss"],
)  # fmt: skip
@CLAIMS.add(
    "20", "theory", "Proposition 9, carried over to the model that is trained, Eq. 10",
    "Gradient reversal converges, and where it ends the click loss is optimal",
    at_most("the largest slope that is left, at every scale and support,", RESTS),
    at_most("the click loss above its least value, at every scale and support,", OPTIMAL),
    chance=False, origin=OURS, metrics=("slope_left", "excess_loss"),
    parts={name: {"part": f"proposition9, {name}"} for name in ("click", "relevance")},
)  # fmt: skip
def at_optima(
    results: pd.DataFrame, part: str, metrics: Sequence[str], supports: Sequence[str] = STRICT
) -> Measured:
    return [_values(results, *supports, part=part, metric=metric) for metric in metrics]


@CLAIMS.add(
    "21", "fig6", "after Propositions 6 and 9 and Lemma 8, which allow 0",
    "At its best positive rate or scale a remedy ranks at least as well as PAL",
    *[
        at_least(f"{name} at its best on the test queries less PAL, under every policy,", -LOST)
        for name in ("GradRev", "Drop")
    ],
    parts={"Yahoo": {"dataset": "yahoo"}, "MSLR-WEB30K": {"dataset": "mslr"}}, also=["table1"],
    origin=OURS,
)  # fmt: skip
def best_of_grid(results: pd.DataFrame, dataset: str) -> Measured:
    over = {"mixing_weight": list(POLICIES)}
    pal = seed_means(results, over, setting=f"{dataset}-{BASELINES[1]}", metric="ndcg@5")
    gains = []
    for method, lane in zip(REMEDIES, TUNED, strict=True):
        curve = seed_means(
            results, {**over, lane: None}, setting=f"{dataset}-{method}", metric="ndcg@5"
        )
        gains.append(curve.groupby("mixing_weight").max() - pal)
    return gains


@CLAIMS.add(
    "22", "postulate4", "Postulate 4",
    "The observation tower learns first what both could explain",
    below("steps to a tenth of what both explain, observation over relevance, Oracle and L1,", 1),
    shown("the same ratio, as a multiple of that at Random, where nothing is confounded"),
    shown("steps of observation", digits=1), shown("steps of relevance", digits=1),
)  # fmt: skip
def observation_first(results: pd.DataFrame) -> Measured:
    over = {"mixing_weight": list(POLICIES), "tower": ["observation", "relevance"]}
    steps = seed_means(results, over, setting="postulate4", metric="steps_to_share").unstack()
    ratio = steps["observation"] / steps["relevance"]
    strong = ratio[[1.0, 0.8]]
    return strong, strong / ratio[0.0], steps["observation"], steps["relevance"]

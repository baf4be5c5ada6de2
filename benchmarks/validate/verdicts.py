"""How often verdicts are wrong, and how often open: simulated experiments, and authors' own runs.

An experiment has several lanes, each with a number per seed, and its truth is known. The rule is
that of `twotowers.claims.verdicts`; docs/verdicts.md states it, and the error rates that it must
keep. `python -m benchmarks.validate verdicts` writes a row per case, law, number of seeds and
distance.

`python -m benchmarks.validate authors` judges the claims of papers on some of their authors' runs:
how often does it decide, and how often against all of the runs?
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.pages import table, yes
from benchmarks.validate.study import Study
from scripts.runner import paper_module
from twotowers.claims import published
from twotowers.claims.claims import CONTRADICTED, REPRODUCED, UNDECIDED, judge
from twotowers.claims.data_provenance import REAL
from twotowers.claims.judging import authors_of
from twotowers.claims.statistics import select
from twotowers.claims.verdicts import decide, jackknife_error, seed_counts, surely, unmoved_error
from twotowers.experiment.matrix import item_needs
from twotowers.root import ROOT

PAGE = ROOT / "docs" / "verdicts.md"
TRIALS = 20_000
"""Experiments of each kind."""
SEEDS = (3, 4, 5, 7, 10)
DISTANCES = (0, 0.5, 1, 2, 4)
LIMITS = {"normal": 0.06, "heavy tails": 0.06, "skewed": 0.10}
"""What docs/verdicts.md allows of each kind of wrong decisions, by law. Numbers are sure at .05.
The rest is for few seeds, and for the simulation itself."""

LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3),
    "skewed": lambda rng, shape: (rng.gamma(4, size=shape) - 4) / 2,
}
"""Noise of mean 0 and variance 1."""


@dataclass(frozen=True)
class Case:
    """A claim, and the truth at a distance from its threshold.

    Attributes:
        slack: [..., seeds, lanes] values -> [..., numbers] distances to thresholds, positive if a
            condition holds (`Condition.slack`).
        means: Distance, positive if the claim is true -> [lanes] means.
        scales: Distance -> standard deviation of a lane's noise.
        shared: Standard deviation of what all lanes of a seed share.
        discrete: Whether numbers are shares of few.
        promised: Whether the limits hold for it. They do not where a number is the largest of
            several that are nearly equal, or where seeds seldom show what makes a claim false.
        laws: Those of which the threshold is known.
    """

    slack: Callable[[np.ndarray], np.ndarray]
    means: Callable[[float], list[float]]
    scales: Callable[[float], list[float] | float] = lambda distance: 1.0
    shared: float = 0.0
    discrete: bool = False
    promised: bool = True
    laws: tuple[str, ...] = tuple(LAWS)

    def draw(self, law: str, trials: int, seeds: int, distance: float, rng) -> np.ndarray:
        """[trials, seeds, lanes]."""
        means = np.asarray(self.means(distance), float)
        noise = LAWS[law](rng, (trials, seeds, len(means))) * self.scales(distance)
        return means + noise + self.shared * LAWS[law](rng, (trials, seeds, 1))


HALF = 2**-0.5
FAR = 8.0


def steps(values: np.ndarray) -> np.ndarray:
    return np.diff(values.mean(-2))


def spread(values: np.ndarray) -> np.ndarray:
    return np.ptp(values.mean(-2), axis=-1, keepdims=True)


def share_in_order(values: np.ndarray) -> np.ndarray:
    """Of the steps from a lane with an even number to the next, the share that rise."""
    means = values.mean(-2)
    return (means[..., 1::2] > means[..., ::2]).mean(-1, keepdims=True)


CEILING = 0.1
"""How far below its ceiling the mean of a number lies at the threshold."""
AT_CEILING = 0.9023
"""The mean of a normal number of which the smaller one of it and 0 has the mean -CEILING."""


def pairs(values: np.ndarray) -> np.ndarray:
    """Absolute differences of any two lanes."""
    means = values.mean(-2)
    one, other = np.triu_indices(means.shape[-1], 1)
    return np.abs(means[..., one] - means[..., other])


CASES = {
    "mean": Case(lambda v: v.mean(-2), lambda d: [d]),
    "paired difference": Case(
        lambda v: -steps(v), lambda d: [d, 0], lambda d: HALF, shared=3,
    ),
    "multiple": Case(
        lambda v: (v.mean(-2) * [-1, 0.5]).sum(-1, keepdims=True),
        lambda d: [5 - d * 1.25**0.5, 10],
    ),
    "absolute error": Case(lambda v: 2 - np.abs(v.mean(-2)), lambda d: [2 - d]),
    "pairs of four lanes": Case(
        lambda v: 3 - pairs(v), lambda d: [0, 1, 2, 3 - d], lambda d: HALF
    ),
    "pairs of four lanes, ties": Case(
        lambda v: 3 - pairs(v), lambda d: [0, 0, 3 - d, 3 - d], lambda d: HALF
    ),
    "spread of four lanes": Case(
        lambda v: 3 - spread(v), lambda d: [0, 1, 2, 3 - d], lambda d: HALF,
        promised=False,
    ),
    "spread of four lanes, ties": Case(
        lambda v: 3 - spread(v), lambda d: [0, 0, 3 - d, 3 - d], lambda d: HALF,
        promised=False,
    ),
    "spread above, ties": Case(
        lambda v: spread(v) - 3, lambda d: [0, 0, 3 + d, 3 + d], lambda d: HALF,
        promised=False,
    ),
    "order, one step near": Case(steps, lambda d: [0, d, FAR + d, 2 * FAR + d], lambda d: HALF),
    "order, all steps near": Case(steps, lambda d: [0, d, 2 * d, 3 * d], lambda d: HALF),
    "twelve numbers, one near": Case(lambda v: v.mean(-2), lambda d: [d, *[FAR] * 11]),
    "twelve numbers, all near": Case(lambda v: v.mean(-2), lambda d: [d] * 12),
    "share of pairs, one near": Case(
        lambda v: share_in_order(v) - 0.9, lambda d: [0, d, *[0, FAR] * 3], lambda d: HALF,
        discrete=True,
    ),
    "share of pairs, all near": Case(
        lambda v: share_in_order(v) - 0.9, lambda d: [0, d] * 4, lambda d: HALF,
        discrete=True,
    ),
    "share of seeds": Case(lambda v: (v > 0).mean(-2) - 0.5, lambda d: [d], discrete=True),
    "deviations": Case(
        lambda v: (v.std(-2, ddof=1) * [-1, 1]).sum(-1, keepdims=True),
        lambda d: [0, 0],
        lambda d: [2.0**-d, 1],
    ),
    "near a ceiling": Case(
        lambda v: np.minimum(v, 0).mean(-2) + CEILING, lambda d: [AT_CEILING + d],
        promised=False, laws=("normal",),
    ),
}  # fmt: skip


def by_rule(case: Case, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which experiments reproduce their claim, and which contradict it, by the code for papers."""
    seeds = values.shape[-2]
    slack = case.slack(values)
    left = [case.slack(np.delete(values, seed, -2)) for seed in range(seeds)]
    error = jackknife_error(slack, np.stack(left, axis=-2))
    if case.discrete and not error.all():
        alone = [case.slack(values[..., [seed], :]) > 0 for seed in range(seeds)]
        error = unmoved_error(error, slack > 0, np.stack(alone, axis=-2))
    holds, fails = surely(slack, slack > 0, error, seeds - 1, slack.shape[-1])
    return holds.all(-1), fails.any(-1)


def rates(case: str, law: str, seeds: int, distance: float, trials: int) -> dict:
    """How often each verdict is reached."""
    rng = np.random.default_rng(list(f"{case}/{law}/{seeds}/{distance}".encode()))
    values = CASES[case].draw(law, trials, seeds, distance, rng)
    holds, fails = (verdicts.mean() for verdicts in by_rule(CASES[case], values))
    row = {"case": case, "law": law, "seeds": seeds, "distance": distance, "trials": trials}
    verdicts = {REPRODUCED: holds, CONTRADICTED: fails, UNDECIDED: 1 - holds - fails}
    return row | {word: round(share, 5) for word, share in verdicts.items()}


def plan(case: str) -> list[tuple[str, str, int, float]]:
    """All that is simulated of a case."""
    ends = sorted({sign * distance for distance in DISTANCES for sign in (-1, 1)})
    return [
        (case, law, seeds, distance)
        for law in CASES[case].laws
        for seeds in SEEDS
        for distance in (ends if law == "normal" else (-1, 0, 1))
    ]


def draw_rates(case: str, seed: int) -> list[dict]:
    """A row per line of the plan. The random numbers are those of the line."""
    return [rates(*row, TRIALS) for row in plan(case)]


def wrong(table: pd.DataFrame) -> pd.Series:
    """The rate of wrong decisions of each row; of both kinds the larger, at the threshold."""
    false, true = table["distance"] <= 0, table["distance"] >= 0
    return np.maximum(table[REPRODUCED].where(false, 0), table[CONTRADICTED].where(true, 0))


SHOWN = (3, 5, 10)
"""Numbers of seeds that the page has columns for."""


# The authors' own runs.

FEW = (3, 5)
"""Runs of a sample of the authors' runs."""
SAMPLES = 20
"""Samples of each size, at most; evenly spaced among all."""


def judge_samples(paper: str, seed: int) -> list[dict]:
    """A row per number of runs: decisions on samples of a paper's runs, and wrong ones.

    A decision is against all runs if, on these, the sign is the other. Claims count that can be
    judged on runs, which are more than a sample has.
    """
    given, needs = published.results(paper).assign(stands_on=REAL), item_needs(paper)
    counts = {few: Counter() for few in FEW}
    for claim in paper_module(paper, "claims").CLAIMS:
        own = authors_of(claim, given, needs)
        several = seed_counts(own) > 1
        runs = sorted(own.loc[several, "seed"].unique())
        whole = judge(claim, own) if len(runs) > max(FEW) else None
        if not claim.chance or whole is None or whole.verdict not in (REPRODUCED, CONTRADICTED):
            continue
        for few in FEW:
            every = list(combinations(runs, few))
            for chosen in every[:: -(-len(every) // SAMPLES)]:
                sample = own[own["seed"].isin(chosen) | ~several]
                verdict, of = decide(claim, sample).verdict, counts[few]
                decided = verdict in (REPRODUCED, CONTRADICTED)
                of.update(samples=1, decided=decided)
                of.update(against=decided and verdict != whole.verdict)
                of.update({f"claim {claim.id}": 1})
    return [
        {"paper": paper, "runs": few}
        | {"claims": sum(key.startswith("claim") for key in of)}
        | {name: of[name] for name in ("samples", "decided", "against")}
        for few, of in counts.items()
    ]


STUDIES = {
    "verdicts": Study("verdicts", "case", CASES, draw_rates),
    "authors": Study("authors", "paper", ("hager2023",), judge_samples),
}


def tables() -> dict[Path, dict[str, str]]:
    rows = STUDIES["verdicts"].table()
    rows = rows.assign(
        wrong=wrong(rows),
        decided=1 - rows[UNDECIDED],
        promised=[yes(CASES[case].promised) for case in rows["case"]],
    )
    errors = rows.pivot_table(index="promised", columns="law", values="wrong", aggfunc="max")
    some = select(rows, law="normal", seeds=SHOWN, case=["mean", "twelve numbers, all near"])
    some = select(some, distance=[-1, 1, 2])
    power = some.pivot_table(index=["case", "distance"], columns="seeds", values="decided")
    power.columns = power.columns.map(str)
    own = [each.reset_index().to_dict("records") for each in (errors, power)]
    heads = "paper | runs | claims | samples | decided | against all runs = against"
    return {
        PAGE: {
            "errors": table(own[0], " | ".join(["promised", *(f"{law} : .3f" for law in LAWS)])),
            "decided": table(own[1], "case | distance | 3 : .2f | 5 : .2f | 10 : .2f"),
            "authors": table(STUDIES["authors"].table().to_dict("records"), heads),
        }
    }

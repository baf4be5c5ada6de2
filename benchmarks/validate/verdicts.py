"""How often verdicts are wrong, and how often open, on simulated experiments of known truth.

An experiment has several lanes, each with a number per seed. The rule is that of
`twotowers.claims.verdicts`; docs/verdicts.md states it, and the error rates that it must keep. Two
others are simulated at the threshold itself. `python -m benchmarks.validate verdicts` writes a row
per rule, case, law, number of seeds and distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.validate.study import Study
from scripts.filling import markdown
from twotowers.claims.claims import CONTRADICTED, REPRODUCED, UNDECIDED
from twotowers.claims.verdicts import jackknife_error, surely, unmoved_error
from twotowers.root import ROOT

PAGE = ROOT / "docs" / "verdicts.md"
TRIALS = 20_000
"""Experiments of each kind."""
SEEDS = (3, 4, 5, 7, 10)
DISTANCES = (0, 0.5, 1, 2, 4)
LIMIT = 0.05
"""What docs/verdicts.md allows of each kind of wrong decisions."""
RESAMPLES, AGREEING = 200, 0.95

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
    """

    slack: Callable[[np.ndarray], np.ndarray]
    means: Callable[[float], list[float]]
    scales: Callable[[float], list[float] | float] = lambda distance: 1.0
    shared: float = 0.0

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
        lambda v: 3 - spread(v), lambda d: [0, 1, 2, 3 - d], lambda d: HALF
    ),
    "spread of four lanes, ties": Case(
        lambda v: 3 - spread(v), lambda d: [0, 0, 3 - d, 3 - d], lambda d: HALF
    ),
    "spread above, ties": Case(
        lambda v: spread(v) - 3, lambda d: [0, 0, 3 + d, 3 + d], lambda d: HALF
    ),
    "order, one step near": Case(steps, lambda d: [0, d, FAR + d, 2 * FAR + d], lambda d: HALF),
    "order, all steps near": Case(steps, lambda d: [0, d, 2 * d, 3 * d], lambda d: HALF),
    "twelve numbers, one near": Case(lambda v: v.mean(-2), lambda d: [d, *[FAR] * 11]),
    "twelve numbers, all near": Case(lambda v: v.mean(-2), lambda d: [d] * 12),
    "share of pairs, one near": Case(
        lambda v: share_in_order(v) - 0.9, lambda d: [0, d, *[0, FAR] * 3], lambda d: HALF
    ),
    "share of pairs, all near": Case(
        lambda v: share_in_order(v) - 0.9, lambda d: [0, d] * 4, lambda d: HALF
    ),
    "share of seeds": Case(lambda v: (v > 0).mean(-2) - 0.5, lambda d: [d]),
    "deviations": Case(
        lambda v: (v.std(-2, ddof=1) * [-1, 1]).sum(-1, keepdims=True),
        lambda d: [0, 0],
        lambda d: [2.0**-d, 1],
    ),
}  # fmt: skip


OTHERS = (
    *("mean", "order, one step near", "twelve numbers, all near"),
    *("share of pairs, one near", "share of seeds"),
)
"""The cases in which other rules are simulated."""


def by_interval(case: Case, values: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """The rule of docs/verdicts.md, by the code that judges papers."""
    seeds = values.shape[-2]
    slack = case.slack(values)
    left = [case.slack(np.delete(values, seed, -2)) for seed in range(seeds)]
    error = jackknife_error(slack, np.stack(left, axis=-2))
    if not error.all():
        alone = [case.slack(values[..., [seed], :]) > 0 for seed in range(seeds)]
        error = unmoved_error(error, slack > 0, np.stack(alone, axis=-2))
    holds, fails = surely(slack, slack > 0, error, seeds - 1)
    return holds.all(-1), fails.any(-1)


def by_leaving_out(case: Case, values: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """Decided if the results without each seed agree with all."""
    seeds = range(values.shape[-2])
    held = [(case.slack(np.delete(values, seed, -2)) > 0).all(-1) for seed in seeds]
    return _if_agreed(case, values, np.stack(held), 1)


def by_bootstrap(case: Case, values: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """Decided if .95 of samples of the seeds, with replacement, agree with all."""
    seeds = values.shape[-2]
    drawn = rng.integers(seeds, size=(RESAMPLES, seeds))
    held = [(case.slack(values[:, sample]) > 0).all(-1) for sample in drawn]
    return _if_agreed(case, values, np.stack(held), AGREEING)


def _if_agreed(case: Case, values, held, share: float) -> tuple[np.ndarray, np.ndarray]:
    whole = (case.slack(values) > 0).all(-1)
    return whole & (held.mean(0) >= share), ~whole & ((~held).mean(0) >= share)


RULES = {"interval": by_interval, "leave one out": by_leaving_out, "bootstrap": by_bootstrap}


def rates(rule: str, case: str, law: str, seeds: int, distance: float, trials: int) -> dict:
    """How often each verdict is reached."""
    rng = np.random.default_rng(list(f"{case}/{law}/{seeds}/{distance}".encode()))
    values = CASES[case].draw(law, trials, seeds, distance, rng)
    holds, fails = (found.mean() for found in RULES[rule](CASES[case], values, rng))
    where = {"rule": rule, "case": case, "law": law, "seeds": seeds, "distance": distance}
    found = {REPRODUCED: holds, CONTRADICTED: fails, UNDECIDED: 1 - holds - fails}
    return {**where, "trials": trials, **{word: round(share, 5) for word, share in found.items()}}


def plan(case: str) -> list[tuple[str, str, str, int, float]]:
    """All that is simulated of a case: the whole grid of the rule, others at the threshold."""
    ends = sorted({sign * distance for distance in DISTANCES for sign in (-1, 1)})
    near = (-1, 0, 1)
    rows = [
        ("interval", case, law, seeds, distance)
        for law in LAWS
        for seeds in SEEDS
        for distance in (ends if law == "normal" else near)
    ]
    others = [rule for rule in RULES if rule != "interval" and case in OTHERS]
    return rows + [(rule, case, "normal", n, 0) for rule in others for n in SEEDS]


def draw_rates(case: str, seed: int) -> list[dict]:
    """A row per line of the plan. The random numbers are those of the line."""
    return [rates(*row, TRIALS) for row in plan(case)]


def wrong(table: pd.DataFrame) -> pd.Series:
    """The rate of wrong decisions of each row; of both kinds the larger, at the threshold."""
    false, true = table["distance"] <= 0, table["distance"] >= 0
    kinds = pd.DataFrame({
        "of a false claim": table[REPRODUCED].where(false, 0),
        "of a true one": table[CONTRADICTED].where(true, 0),
    })  # fmt: skip
    return kinds.max(axis="columns")


def shares(table: pd.DataFrame, digits: int) -> str:
    """A table of shares, a row per index and a column per column."""
    named = table.rename_axis(columns=None).reset_index()
    named = named.astype(dict.fromkeys(table.index.names, str))
    rows = (
        [each if isinstance(each, str) else f"{each:.{digits}f}" for each in row]
        for row in named.to_numpy().tolist()
    )
    return markdown(map(str, named.columns), rows)


SHOWN = (3, 5, 10)
"""Numbers of seeds that the page has columns for."""


STUDIES = {"verdicts": Study("verdicts", "case", CASES, draw_rates)}


def tables() -> dict[Path, dict[str, str]]:
    """The tables of docs/verdicts.md."""
    table = STUDIES["verdicts"].table()
    table = table.assign(wrong=wrong(table))
    ours = table["rule"] == "interval"
    errors = table[ours].pivot_table(index="rule", columns="law", values="wrong", aggfunc="max")
    table = table[table["seeds"].isin(SHOWN)]
    normal = table["law"] == "normal"
    rules = table[(table["distance"] == 0) & normal & table["case"].isin(OTHERS)]
    worst = rules.pivot_table(index="rule", columns="seeds", values="wrong", aggfunc="max")
    mean = table[(table["rule"] == "interval") & normal & (table["case"] == "mean")]
    mean = mean[mean["distance"].abs().isin([0, 1, 2])]
    undecided = mean.pivot_table(index="distance", columns="seeds", values=UNDECIDED)
    return {
        PAGE: {
            "errors": shares(errors[list(LAWS)], 3),
            "rules": shares(worst, 3),
            "undecided": shares(undecided, 2),
        }
    }

"""Verdicts on claims, and how sure they are: docs/verdicts.md.

A judge is asked on all results, and without each seed. The jackknife's standard errors tell which
numbers are surely on their side of the threshold.

    >>> from twotowers.claims.claims import PAPER, Claim
    >>> from twotowers.claims.conditions import above
    >>> claim = Claim("1", "fig1", "Sec. 1", "A gain", [above("the gain", 0.1)],
    ...     lambda results: results["value"].mean())
    >>> seeds = pd.DataFrame({"setting": "s", "seed": [1, 2, 3], "value": [0.24, 0.2, 0.25]})
    >>> decide(claim, seeds).verdict
    'reproduced'
    >>> judgement = decide(claim, seeds.assign(value=[0.14, 0.1, 0.25]))
    >>> judgement.verdict, judgement.held
    ('undecided', '3 of 3')
    >>> judgement.reason
    'open: the gain is above .1 (holds by 1.4 standard errors; about 7 seeds would decide)'
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pandas as pd

from twotowers.claims.claims import (
    CONTRADICTED,
    NOT_TESTABLE,
    ONE_SEED,
    REPRODUCED,
    SEEDS,
    UNDECIDED,
    Claim,
    Judgement,
    NotTestable,
    TooFewRuns,
    failing,
    judge,
    outcome,
)
from twotowers.claims.conditions import OPPOSITE, SIGNIFICANT, Condition
from twotowers.intervals import quantile

HOLDS, FAILS = 0.9, 0.99
"""Coverage of the interval of a number that surely meets its condition, and of all those of a claim
of which one surely does not. What this promises: docs/verdicts.md, "Error rates of the rule"."""
LEAST_ALONE = 8
"""Seeds from which a count that none of them moves may be sure: 2^-8 is below (1 - FAILS) / 2."""
MOST_SEEDS = 1000
"""Up to which a reason says how many seeds would decide."""

Measurements = Sequence[tuple[Condition, object]]
"""Each condition with what a judge measured for it."""


def decide(
    claim: Claim, results: pd.DataFrame, without: Sequence[np.ndarray] | None = None
) -> Judgement:
    """The verdict on a claim, with regard to the chance of seeds.

    `without` has of each condition which numbers do not count; all do if it is None. A condition of
    which none counts is open.
    """
    try:
        pairs = claim.measure(results)
    except (NotTestable, TooFewRuns):
        return judge(claim, results)
    whole = outcome(claim, pairs)
    if not claim.chance and without is None:
        return whole
    seeds, least = seeds_of(results) if claim.chance else ([], LEAST_ALONE)
    if least < 2 and whole.verdict == NOT_TESTABLE:
        return whole
    if least < 2:
        reason = "one seed tells nothing of chance"
        return replace(whole, verdict=UNDECIDED, reason=reason, cause=ONE_SEED)
    if claim.chance and (lone := _lone_setting(claim, pairs, results)):
        reason = f"{lone} has one seed, which tells nothing of chance"
        return replace(whole, verdict=UNDECIDED, reason=reason, cause=ONE_SEED)
    try:
        lone = seed_counts(results) == 1
        left = [claim.measure(results[(results["seed"] != seed) | lone]) for seed in seeds]
    except (NotTestable, TooFewRuns) as lacking:
        reason = f"without one of the seeds: {lacking}"
        return replace(whole, verdict=UNDECIDED, reason=reason, cause=SEEDS)
    # It is asked if no seed moves a count.
    alone = cache(partial(_alone, claim, results, seeds)) if least >= LEAST_ALONE else list
    checked = [
        _check(at, pairs, left, alone, None if without is None else without[at], least)
        for at, (condition, _) in enumerate(pairs)
        if condition.judged
    ]
    held = sum(np.all([check.held for check in checked], axis=0))
    checked = [check for check in checked if not check.condition.otherwise]
    numbers = sum(len(check.slack) for check in checked)
    sure = [surely(each.slack, each.met, each.error, least - 1, numbers) for each in checked]
    wrong = [check for check, (_, fails) in zip(checked, sure, strict=True) if fails.any()]
    opened = [check for check, (holds, _) in zip(checked, sure, strict=True) if not holds.all()]
    if wrong:
        verdict, reason = CONTRADICTED, failing(check.condition for check in wrong)
    elif whole.verdict == NOT_TESTABLE:
        return whole
    elif opened:
        texts = (check.text(least, numbers=numbers) for check in opened)
        verdict, reason = UNDECIDED, "open: " + "; ".join(texts)
    else:
        verdict, reason = REPRODUCED, ""
    cause = SEEDS if verdict == UNDECIDED else ""
    return Judgement(verdict, whole.measured, reason, f"{held} of {len(left)}", cause)


def jackknife_error(slack: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Standard errors by the jackknife: se^2 = (n - 1) / n sum_i (other_i - slack)^2.

    `slack` [..., numbers] is on all results, `others` [..., n, numbers] without each of n seeds. A
    number that no seed moves has 0.
    """
    slack = np.expand_dims(slack, -2)
    with np.errstate(invalid="ignore"):
        off = np.where(others == slack, 0, others - slack)
    # Rounding moves a number that no seed moves.
    off = np.where(np.abs(off) <= 1e-12 * np.abs(slack), 0, off)
    n = others.shape[-2]
    return np.sqrt((n - 1) / n * (off**2).sum(axis=-2))


def unmoved_error(error: np.ndarray, met: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Errors of counts, corrected where they are 0: chance alone can leave a count as it is.

    Such a number keeps the error 0 if it meets its condition, `met` [..., numbers], and does so on
    each of enough seeds alone [..., n, numbers]. Otherwise nothing is known, and the error is
    infinite. So it never surely fails: noise by itself breaks an order, in every seed.
    """
    sure = met & alone.all(axis=-2) & (alone.shape[-2] >= LEAST_ALONE)
    return np.where((error == 0) & ~sure, np.inf, error)


def surely(
    slack: np.ndarray, met: np.ndarray, error: np.ndarray, freedom: int, numbers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which [...] numbers of a claim surely meet their condition, and which surely do not.

    The worst of many `numbers` of the claim fails most by chance, so that a failure has a stricter
    test.
    """
    certain = error == 0
    half, stricter = (
        np.where(
            certain, 0, quantile(freedom, level=level) * np.maximum(error, np.finfo(float).tiny)
        )
        for level in (HOLDS, 1 - (1 - FAILS) / numbers)
    )
    with np.errstate(invalid="ignore"):  # No distance, and no error either.
        return met & (certain | (slack - half > 0)), ~met & (certain | (slack + stricter < 0))


def seeds_of(results: pd.DataFrame) -> tuple[list, int]:
    """The seeds of the settings that have several, and the least number of such a setting.

    The number is 1 if no setting has several.
    """
    per_setting = seed_counts(results)
    several = per_setting > 1
    least = int(per_setting[several].min()) if several.any() else 1
    return sorted(results.loc[several, "seed"].unique()), least


def _lone_setting(claim: Claim, pairs: Measurements, results: pd.DataFrame) -> str | None:
    """A setting with a single seed that the verdict rests on: without it, it is another or none."""
    if "setting" not in results:
        return None
    for setting in results.loc[seed_counts(results) == 1, "setting"].unique():
        if setting not in claim.fixed and differs(
            claim, pairs, results[results["setting"] != setting]
        ):
            return setting
    return None


def differs(claim: Claim, pairs: Measurements, results: pd.DataFrame) -> bool:
    """Whether a judge measures other numbers on these results, or none."""
    return any(each.any() for each in moved(claim, pairs, results))


def moved(claim: Claim, pairs: Measurements, results: pd.DataFrame) -> list[np.ndarray]:
    """Of each condition, which numbers are others on these results.

    All are if there are more or fewer, or if the judge cannot measure.
    """
    try:
        others = [_slacks(*each) for each in claim.measure(results)]
    except (NotTestable, TooFewRuns, LookupError, ValueError):
        others = [np.empty(0)] * len(pairs)
    return [
        (own != other) & ~(np.isnan(own) & np.isnan(other))
        if len(own) == len(other)
        else np.ones(len(own), bool)
        for own, other in zip([_slacks(*each) for each in pairs], others, strict=True)
    ]


def _slacks(condition: Condition, measured: object) -> np.ndarray:
    """The numbers of a condition; none if it is not judged."""
    return condition.slack(measured).to_numpy(float) if condition.judged else np.empty(0)


def seed_counts(results: pd.DataFrame) -> pd.Series:
    """Of each row, how many seeds its setting has."""
    if "setting" not in results:
        return pd.Series(results["seed"].nunique(), results.index)
    return results.groupby("setting")["seed"].transform("nunique")


def _alone(claim: Claim, results: pd.DataFrame, seeds: Iterable) -> list[Measurements]:
    """What a judge measures on each seed alone; nothing if it cannot."""
    single = seed_counts(results) == 1
    try:
        return [claim.measure(results[(results["seed"] == seed) | single]) for seed in seeds]
    except (NotTestable, TooFewRuns):
        return []


@dataclass(frozen=True)
class _Check:
    """The numbers of one condition.

    Attributes:
        slack, met, error: [numbers].
        held: [left out seeds], whether the condition held without each.
    """

    condition: Condition
    slack: np.ndarray
    met: np.ndarray
    error: np.ndarray
    held: np.ndarray

    def text(self, seeds: int, *, numbers: int) -> str:
        """The condition, how far its weakest number is from sure, and how many seeds would decide.

        `numbers` is how many the claim has.
        """
        words = self.condition.words
        if not self.condition.relation:
            return f"{words} (not so in every seed, or fewer than {LEAST_ALONE})"
        if self.condition.relation == SIGNIFICANT:
            return f"{words} ({'not so without each seed' if self.met.all() else 'it is not'})"
        if np.isinf(self.error).any():
            return f"{words} (the same in every seed, which may be chance)"
        if not np.isfinite(self.slack).all():
            return f"{words} (not measured without each seed)"
        wide = np.where(self.met, HOLDS, 1 - (1 - FAILS) / numbers)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(self.met, 1, -1) * np.abs(self.slack) / self.error
        at = np.nanargmin(far)
        more = np.arange(seeds + 1, MOST_SEEDS + 1)
        enough = abs(far[at]) * np.sqrt(more / seeds) > quantile(more - 1, level=wide[at])
        found = f"about {more[enough.argmax()]}" if enough.any() else f"more than {MOST_SEEDS:,}"
        side = "holds" if self.met[at] else "fails"
        return f"{words} ({side} by {abs(far[at]):.1f} standard errors; {found} seeds would decide)"


def _check(
    at: int,
    pairs: Measurements,
    left: Sequence[Measurements],
    alone: Callable[[], Sequence[Measurements]],
    without: np.ndarray | None,
    seeds: int,
) -> _Check:
    condition, measured = pairs[at]
    slack = condition.slack(measured)
    others = [condition.slack(each[at][1]) for each in left]
    held = np.array([condition.met_together(other) for other in others])
    numbers = _finite(slack.to_numpy(float))
    met = condition.met(numbers)
    aligned = [_aligned(other, slack) for other in others]
    # No seed is left out of a claim that no chance enters.
    error = jackknife_error(numbers, _finite(aligned)) if left else np.zeros(len(numbers))
    if condition.relation == SIGNIFICANT:
        # The test has the chance of queries. That of seeds is whether it finds so without each.
        every = np.array([numbers, *aligned])
        sure = condition.met(every).all(0) | (every <= OPPOSITE).all(0)
        error = np.where(sure, 0, np.inf)
    elif left and condition.discrete and not error.all():
        ones = [_aligned(condition.slack(each[at][1]), slack) for each in alone()]
        error = unmoved_error(error, met, condition.met(np.reshape(ones, (-1, len(numbers)))))
    if without is not None:
        # What does not count neither fails nor holds, if nothing else of its condition does.
        met = met | without
        error = np.where(without, np.inf if without.all() else 0, error)
    if condition.some:
        numbers, met, error = _surest(numbers, met, error, seeds - 1)
    return _Check(condition, numbers, met, error, held)


def _surest(
    slack: np.ndarray, met: np.ndarray, error: np.ndarray, freedom: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of numbers of which one is enough, the surest: its error is larger by Bonferroni."""
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(error == 0, np.where(met, np.inf, -np.inf), slack / error)
    at = [np.nan_to_num(far, nan=-np.inf).argmax()]
    one, several = (quantile(freedom, level=1 - (1 - HOLDS) / k) for k in (1, len(slack)))
    return slack[at], met[at], error[at] * several / one


def _finite(slack) -> np.ndarray:
    """What cannot be measured fails by any distance."""
    return np.nan_to_num(np.asarray(slack, float), nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def _aligned(other: pd.Series, slack: pd.Series) -> np.ndarray:
    """Slacks in the places of others: by labels, by place if there are none, else unknown.

    What is missing, such as the number of the seed that was left out, is as it was. What is there
    and NaN could not be measured.
    """
    if slack.index.is_unique and other.index.is_unique and len(slack) > 1:
        there = slack.index.isin(other.index)
        return other.reindex(slack.index).where(there, slack).to_numpy(float)
    if len(other) == len(slack):
        return other.to_numpy(float)
    return np.full(len(slack), np.inf)

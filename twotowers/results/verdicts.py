"""Verdicts on claims, and how sure they are: docs/verdicts.md.

A judge is asked on all results, and without each seed. The jackknife's standard errors tell which
numbers are surely on their side of the threshold.

    >>> from twotowers.results.claims import PAPER, Claim
    >>> from twotowers.results.conditions import above
    >>> claim = Claim("1", "fig1", "Sec. 1", "A gain", [above("the gain", 0.1)],
    ...     lambda results: results["value"].mean())
    >>> seeds = pd.DataFrame({"setting": "s", "seed": [1, 2, 3], "value": [0.24, 0.2, 0.25]})
    >>> decide(claim, seeds).verdict
    'reproduced'
    >>> found = decide(claim, seeds.assign(value=[0.14, 0.1, 0.25]))
    >>> found.verdict, found.held
    ('undecided', '3 of 3')
    >>> found.reason
    'open: the gain is above .1 (distance to the threshold: -.249 to .376)'
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtrit  # importing scipy.stats is slow

from twotowers.errors import InputError, nearest
from twotowers.results.claims import (
    CONTRADICTED,
    NOT_TESTABLE,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Judgement,
    NotTestable,
    TooFewRuns,
    failing,
    judge,
    outcome,
)
from twotowers.results.conditions import STEPS, Condition, written
from twotowers.results.gates import gates_of, of_failing, told
from twotowers.results.published import about
from twotowers.results.standing import REAL, weakest

HOLDS, FAILS = 0.98, 0.99
"""Coverage of the interval of a number that surely meets its condition, and of one that surely does
not: what keeps wrong decisions below 5 % where seeds are skewed (`benchmarks.verdicts`)."""
LEAST_ALONE = 8
"""Seeds from which a condition without a number may be sure: 2^-8 is below (1 - FAILS) / 2."""

Measurements = Sequence[tuple[Condition, object]]
"""Each condition with what a judge measured for it."""

COLUMNS = [
    "claim", "item", "origin", "statement", "where", "measured", "authors", "authors_verdict",
    "authors_held", "expected", "verdict", "held", "reason", "stands_on",
]  # fmt: skip
AUTHORS = {REPRODUCED: "holds", CONTRADICTED: "fails", UNDECIDED: "undecided"}
"""What is said of a claim on its authors' own numbers, for each verdict."""
FEW, RESAMPLES = 3, 30
"""Runs of a resample of the authors' runs, as many as most papers have; and the most resamples."""


def decide(claim: Claim, results: pd.DataFrame) -> Judgement:
    """The verdict on a claim, with regard to the chance of seeds.

    Args:
        claim: What is claimed.
        results: Long form with a column seed, and setting if there are several.

    Raises:
        ValueError: the judge measured nothing for a condition.
    """
    try:
        pairs = claim.measure(results)
    except (NotTestable, TooFewRuns):
        return judge(claim, results)
    whole = outcome(claim, pairs)
    if not claim.chance:
        return whole
    seeds, least = seeds_of(results)
    if least < 2 and whole.verdict == NOT_TESTABLE:
        return whole
    if least < 2:
        return replace(whole, verdict=UNDECIDED, reason="one seed tells nothing of chance")
    try:
        left = [claim.measure(without_seed(results, seed)) for seed in seeds]
    except (NotTestable, TooFewRuns) as lacking:
        reason = f"without one of the seeds: {lacking}"
        return replace(whole, verdict=UNDECIDED, reason=reason)
    if lone := _lone_setting(claim, pairs, results):
        reason = f"{lone} has one seed, which tells nothing of chance"
        return replace(whole, verdict=UNDECIDED, reason=reason)
    agree = least >= LEAST_ALONE and _alone_agree(claim, results, seeds, whole.verdict)
    return settle(claim, pairs, left, least=least, agree=agree)


def settle(
    claim: Claim,
    pairs: Measurements,
    left: Sequence[Measurements],
    *,
    least: int,
    agree: bool = False,
) -> Judgement:
    """The verdict from what a judge measured on all results, and without each seed.

    Args:
        claim: What is claimed.
        pairs: Each condition with its measurement, on all results.
        left: The same without each seed.
        least: The least number of seeds of a setting that has several, at least 2.
        agree: Whether each seed by itself has the verdict of all.
    """
    whole = outcome(claim, pairs)
    checked = [
        _check(condition, measured, [each[at][1] for each in left], agree)
        for at, (condition, measured) in enumerate(pairs)
        if condition.judged
    ]
    held = sum(np.all([check.held for check in checked], axis=0))
    checked = [check for check in checked if not check.condition.otherwise]
    slack, met, error = (
        np.concatenate([getattr(check, name) for check in checked])
        for name in ("slack", "met", "error")
    )
    holds, fails = surely(slack, met, error, least - 1)
    ends = np.cumsum([len(check.slack) for check in checked])[:-1]
    wrong, right = (np.split(numbers, ends) for numbers in (fails, holds))
    if fails.any():
        verdict = CONTRADICTED
        reason = failing(c.condition for c, f in zip(checked, wrong, strict=True) if f.any())
    elif whole.verdict == NOT_TESTABLE:
        return whole
    elif holds.all():
        verdict, reason = REPRODUCED, ""
    else:
        opened = [check for check, sure in zip(checked, right, strict=True) if not sure.all()]
        verdict = UNDECIDED
        reason = "open: " + "; ".join(check.told(least - 1) for check in opened)
    return Judgement(verdict, whole.measured, reason, f"{held} of {len(left)}")


def jackknife_error(slack: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Standard errors by the jackknife: se^2 = (n - 1) / n sum_i (other_i - slack)^2.

    Args:
        slack: [..., numbers] on all results.
        others: [..., n, numbers] without each of n seeds.

    Returns:
        [..., numbers]: 0 for a number that no seed moves.
    """
    slack = np.expand_dims(slack, -2)
    with np.errstate(invalid="ignore"):
        off = np.where(others == slack, 0, others - slack)
    # Rounding moves a number that no seed moves.
    off = np.where(np.abs(off) <= 1e-12 * np.abs(slack), 0, off)
    n = others.shape[-2]
    return np.sqrt((n - 1) / n * (off**2).sum(axis=-2))


def half_width(error: np.ndarray, freedom: int, level: float = HOLDS) -> np.ndarray:
    """Half of each interval of this coverage."""
    quantile = stdtrit(freedom, (1 + level) / 2)
    return np.where(error == 0, 0, quantile * np.maximum(error, np.finfo(float).tiny))


def surely(
    slack: np.ndarray, met: np.ndarray, error: np.ndarray, freedom: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which numbers surely meet their condition, and which surely do not.

    The worst of many numbers fails most by chance, so that a failure has a stricter test.

    Args:
        slack, met, error: [..., numbers] of a claim: slack, whether it meets the condition, and its
            standard error.
        freedom: Degrees of freedom.
    """
    half = half_width(error, freedom)
    stricter = half_width(error, freedom, 1 - (1 - FAILS) / slack.shape[-1])
    certain = error == 0
    with np.errstate(invalid="ignore"):  # No distance, and no error either.
        return met & (certain | (slack - half > 0)), ~met & (certain | (slack + stricter < 0))


def seeds_of(results: pd.DataFrame) -> tuple[list, int]:
    """The seeds of the settings that have several, and the least number of such a setting.

    The number is 1 if no setting has several.
    """
    per_setting = _counts(results)
    several = per_setting > 1
    least = int(per_setting[several].min()) if several.any() else 1
    return sorted(results.loc[several, "seed"].unique()), least


def without_seed(results: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The results without a seed; a setting with a single one keeps it."""
    return results[(results["seed"] != seed) | (_counts(results) == 1)]


def _lone_setting(claim: Claim, pairs: Measurements, results: pd.DataFrame) -> str | None:
    """A setting with a single seed that the verdict rests on: without it, it is another or none."""
    if "setting" not in results:
        return None
    for setting in results.loc[_counts(results) == 1, "setting"].unique():
        if _differs(claim, pairs, results[results["setting"] != setting]):
            return setting
    return None


def rests_on(claim: Claim, results: pd.DataFrame, gates: pd.DataFrame) -> str:
    """The fits that a claim rests on and whose gates fail, as a text; empty if there are none.

    A claim rests on them if its judge cannot do without them, or measures other numbers.

    Args:
        claim: What is claimed.
        results: What its judge sees.
        gates: From `twotowers.results.gates.gates_of`.
    """
    pairs, failing = claim.measure(results), gates[gates["fails"]]
    rows = of_failing(results, failing)
    if not rows.any() or not _differs(claim, pairs, results[~rows]):
        return ""
    here = failing[failing["setting"].isin(results["setting"])]
    apart = [own for _, own in here.groupby("setting", sort=False)]
    alone = [own for own in apart if _differs(claim, pairs, results[~of_failing(results, own)])]
    return told(pd.concat(alone or apart))


def _differs(claim: Claim, pairs: Measurements, results: pd.DataFrame) -> bool:
    """Whether a judge measures other numbers on these results, or none."""
    try:
        other = claim.measure(results)
    except (NotTestable, TooFewRuns, LookupError, ValueError):
        return True
    return any(
        condition.judged and not condition.slack(measured).equals(condition.slack(without))
        for (condition, measured), (_, without) in zip(pairs, other, strict=True)
    )


def _counts(results: pd.DataFrame) -> pd.Series:
    """Of each row, how many seeds its setting has."""
    if "setting" not in results:
        return pd.Series(results["seed"].nunique(), results.index)
    return results.groupby("setting")["seed"].transform("nunique")


def _alone_agree(claim: Claim, results: pd.DataFrame, seeds: Iterable, verdict: str) -> bool:
    """Whether each seed by itself has the same verdict. Asked only where it matters."""
    if all(each.relation or not each.judged or each.otherwise for each in claim.conditions):
        return False
    single = _counts(results) == 1
    return all(
        judge(claim, results[(results["seed"] == seed) | single]).verdict == verdict
        for seed in seeds
    )


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

    def told(self, freedom: int) -> str:
        """The condition, and the interval of its weakest number."""
        if not self.condition.relation:
            return f"{self.condition.words} (not so in every seed, or fewer than {LEAST_ALONE})"
        half = half_width(self.error, freedom)
        at = np.argmin(self.slack - half)
        with np.errstate(invalid="ignore"):
            ends = " to ".join(written(self.slack[at] + sign * half[at]) for sign in (-1, 1))
        about = "step" if self.condition.relation in STEPS else "distance to the threshold"
        return f"{self.condition.words} ({about}: {ends})"


def _check(condition: Condition, measured: object, left: Sequence[object], agree: bool) -> _Check:
    slack = condition.slack(measured)
    others = [condition.slack(each) for each in left]
    held = np.array([other.size and condition.met(other).all() for other in others])
    numbers = _finite(slack.to_numpy(float))
    error = jackknife_error(numbers, _finite([_aligned(other, slack) for other in others]))
    if not condition.relation:
        error = np.full(len(numbers), 0.0 if agree else np.inf)
    return _Check(condition, numbers, condition.met(numbers), error, held)


def _finite(slack) -> np.ndarray:
    """What cannot be measured fails by any distance."""
    return np.nan_to_num(np.asarray(slack, float), nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def _aligned(other: pd.Series, slack: pd.Series) -> np.ndarray:
    """Slacks in the places of others: by labels, by place if there are none, else unknown.

    What is missing, such as the number of the seed that was left out, is as it was.
    """
    if slack.index.is_unique and other.index.is_unique and len(slack) > 1:
        return other.reindex(slack.index).fillna(slack).to_numpy(float)
    if len(other) == len(slack):
        return other.to_numpy(float)
    return np.full(len(slack), np.inf)


def on_authors(claim: Claim, authors: pd.DataFrame) -> tuple[str, str, str]:
    """What a judge says of the authors' own results.

    Runs are judged as ours are, those of the seeds on which the judge can answer. Of printed means
    nobody knows the chance, so they are judged as they are.

    Args:
        claim: What is claimed.
        authors: The rows that the claim is about, of `twotowers.results.published.results`.

    Returns:
        What was measured; one of AUTHORS; and whether the claim holds on all runs together and in
        how many triples of them (about RESAMPLES, evenly spaced), or that these are printed means.
        All empty if the results lack what the judge needs.
    """
    found, several = decide(claim, authors), _counts(authors) > 1
    seeds = sorted(authors.loc[several, "seed"].unique())
    if found.verdict == NOT_TESTABLE and seeds:
        # Some runs are missing.
        seeds = [seed for seed in seeds if _answers(claim, _of_seeds(authors, [seed]))]
        authors = _of_seeds(authors, seeds)
        found = decide(claim, authors)
    whole = judge(claim, authors)
    if whole.verdict == NOT_TESTABLE or not whole.measured:
        return "", "", ""
    if not seeds or not _differs(claim, claim.measure(authors), authors[_counts(authors) == 1]):
        return whole.measured, AUTHORS[whole.verdict], "printed means"
    every = list(combinations(seeds, FEW))
    chosen = every[:: max(1, len(every) // RESAMPLES)]
    triples = [judge(claim, _of_seeds(authors, few)) for few in chosen]
    answers = [each.verdict for each in triples if each.verdict in (REPRODUCED, CONTRADICTED)]
    said = f"{AUTHORS[whole.verdict]} on all {len(seeds)} runs together"
    if len(answers) > 1:
        share = np.mean([verdict == REPRODUCED for verdict in answers])
        said += f", holds in {share:.0%} of {len(answers)} triples of them"
    return whole.measured, AUTHORS[found.verdict], said


def _answers(claim: Claim, results: pd.DataFrame) -> bool:
    return judge(claim, results).verdict in (REPRODUCED, CONTRADICTED)


def _of_seeds(results: pd.DataFrame, seeds: Collection) -> pd.DataFrame:
    """The rows of some seeds; a setting with a single one keeps it."""
    return results[results["seed"].isin(seeds) | (_counts(results) == 1)]


def _gated(claim: Claim, results: pd.DataFrame, gates: pd.DataFrame) -> Judgement:
    """The verdict on a claim, with regard to the chance of seeds and to gates of fits."""
    found = decide(claim, results)
    if not claim.gated or found.verdict not in (REPRODUCED, CONTRADICTED):
        return found
    failing = rests_on(claim, results, gates)
    if not failing:
        return found
    return replace(found, verdict=UNDECIDED, reason=f"rests on fits that fail a gate: {failing}")


def judge_all(
    claims: Iterable[Claim],
    results: pd.DataFrame,
    authors: pd.DataFrame | None,
    *,
    items: Mapping[str, Sequence[str]],
    data: Mapping[str, str],
    known: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """Judge every claim on the results that its items are drawn from.

    A judge sees no other results, so `stands_on` covers all data behind a verdict. The results that
    a judge sees have a column `stands_on` too, with the kind of data behind each row.

    Args:
        claims: The claims of one paper.
        results: Our results, long form.
        authors: The authors' published results (`twotowers.results.published.results`). Nothing is
            published if it is None or has no rows.
        items: Item -> the settings and studies that it is drawn from, at this scale.
        data: Setting or study -> what it reads, one of `twotowers.results.standing.KINDS`.
        known: All items of the paper, as `items`, at whatever scale: a scale may leave some out.

    Returns:
        One row per claim with the columns COLUMNS. Those of the authors are as in `on_authors`.
        `stands_on` is the weakest kind of data behind the results that the judge saw.

    Raises:
        InputError: a claim names an item that the paper does not have, or there are no results.
        ValueError: a judge measured nothing for a condition.
    """
    if results.empty:
        raise InputError("there are no results to judge", field="results")
    results = results.assign(stands_on=results["setting"].map(data))
    if authors is not None:
        authors = authors.assign(stands_on=REAL)
    gates = gates_of(results)
    rows = []
    for claim in claims:
        for name in (claim.item, *claim.also):
            if name not in (items if known is None else known):
                raise InputError(
                    f"claim {claim.id} names an item that the paper does not have: {name!r}",
                    field="item",
                    expected=nearest(name, known or items),
                )
        needs = [need for name in (claim.item, *claim.also) for need in items.get(name, ())]
        if claim.item in items:
            ours = _gated(claim, results[results["setting"].isin(needs)], gates)
        else:
            ours = Judgement(NOT_TESTABLE, reason=f"{claim.item} is left out at this scale")
        theirs = "", "", ""
        if authors is not None and len(authors):
            own, asked = about(authors, claim.item), (claim.item, *claim.also)
            own = own[own["setting"].isin([n for name in asked for n in (known or items)[name]])]
            theirs = on_authors(claim, own) if len(own) else theirs
        stands_on = weakest(data[need] for need in needs or data)
        rows.append(
            (
                claim.id,
                claim.item,
                claim.origin,
                claim.statement,
                claim.where,
                ours.measured,
                *theirs,
                claim.expected,
                ours.verdict,
                ours.held,
                ours.reason,
                stands_on,
            )
        )
    return pd.DataFrame(rows, columns=COLUMNS)

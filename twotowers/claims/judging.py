"""All claims of a paper judged: on our results, with regard to gates of fits, and on its authors'.

`twotowers.claims.verdicts` has the rule for one claim.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
import pandas as pd

from twotowers.claims.claims import (
    CHECK,
    CONTRADICTED,
    GATE,
    NOT_TESTABLE,
    OURS,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Judgement,
    NotTestable,
    TooFewRuns,
    judge,
)
from twotowers.claims.conditions import SIGNIFICANT
from twotowers.claims.data_provenance import REAL, SIMULATION, weakest
from twotowers.claims.gates import failing_text, of_failing
from twotowers.claims.published import about
from twotowers.claims.verdicts import decide, differs, moved, seed_counts
from twotowers.errors import check_choice
from twotowers.root import ROOT

COLUMNS = [
    "claim", "item", "origin", "statement", "where", "measured", "authors", "authors_verdict",
    "authors_held", "expected", "verdict", "cause", "held", "reason", "stands_on", "contradiction",
    "judge",
]  # fmt: skip
AUTHORS = {REPRODUCED: "holds", CONTRADICTED: "fails", UNDECIDED: "undecided"}
"""What is said of a claim on its authors' own numbers, for each verdict."""
STATEMENT, NUMBERS, SETTING, OWN = (
    "the statement fails",
    "it fails on its authors’ own numbers",
    "our data or setting differ",
    "our own claim fails",
)
CONTRADICTIONS = {
    STATEMENT: "It fails in the paper’s own simulation, or exactly.",
    NUMBERS: "The numbers that the authors print or publish do not bear it out.",
    SETTING: "It fails here, on generated data or with choices of ours. That says little of the "
    "paper.",
    OWN: "It is no claim of the paper’s.",
}
"""Kinds of contradiction, and their meanings."""
UNMADE = "is not made by this run"
"""Behind an item, in the reason of a claim that is not testable for it."""
ANSWERS = REPRODUCED, CONTRADICTED
FEW, RESAMPLES = 3, 30
"""Runs of a resample of the authors' runs, as many as most papers have; and the most resamples."""


SLIGHT, FAR = 1e-6, 10.0
"""By how much fits are moved, beside 1 + their size, to see which numbers rest on them: numbers
that change smoothly, and counts."""


def rests_on(claim: Claim, results: pd.DataFrame, rows: pd.Series) -> list[np.ndarray]:
    """Of each condition, which numbers rest on some `rows` (bool): those that move with them."""
    value, pairs = results["value"], claim.measure(results)
    size = (1 + value.abs()).where(rows, 0)
    noise = np.random.default_rng(0).uniform(0.5, 1, len(results))

    slightly, up, down = (
        moved(claim, pairs, results.assign(value=value + step * size))
        for step in (SLIGHT * noise, FAR, -FAR)
    )
    return [
        up[at] | down[at] if condition.discrete or condition.relation == SIGNIFICANT else own
        for at, ((condition, _), own) in enumerate(zip(pairs, slightly, strict=True))
    ]


def on_authors(claim: Claim, authors: pd.DataFrame) -> tuple[str, str, str]:
    """What a judge says of the authors' own results (`twotowers.claims.published.results`).

    Runs are judged as ours are, those of the seeds on which the judge can answer. Of printed means
    nobody knows the chance, so they are judged as they are. The texts are what was measured; one of
    AUTHORS; and whether the claim holds on all runs together and in how many triples of them (about
    RESAMPLES, evenly spaced), or that these are printed means. All empty if the results lack what
    the judge needs.
    """
    judgement, several = decide(claim, authors), seed_counts(authors) > 1
    seeds = sorted(authors.loc[several, "seed"].unique())
    if judgement.verdict == NOT_TESTABLE and seeds:
        # Some runs are missing.
        alone = {seed: judge(claim, _of_seeds(authors, [seed])).verdict for seed in seeds}
        seeds = [seed for seed, verdict in alone.items() if verdict in ANSWERS]
        authors = _of_seeds(authors, seeds)
        judgement = decide(claim, authors)
    whole = judge(claim, authors)
    if whole.verdict == NOT_TESTABLE or not whole.measured:
        return "", "", ""
    if not seeds or not differs(claim, claim.measure(authors), authors[seed_counts(authors) == 1]):
        return whole.measured, AUTHORS[whole.verdict], "printed means"
    every = list(combinations(seeds, FEW))
    chosen = every[:: max(1, len(every) // RESAMPLES)]
    triples = [judge(claim, _of_seeds(authors, few)).verdict for few in chosen]
    answers = [verdict for verdict in triples if verdict in ANSWERS]
    said = f"{AUTHORS[whole.verdict]} on all {len(seeds)} runs together"
    if len(answers) > 1:
        share = np.mean([verdict == REPRODUCED for verdict in answers])
        said += f", holds in {share:.0%} of {len(answers)} triples of them"
    return whole.measured, AUTHORS[judgement.verdict], said


def authors_of(
    claim: Claim, authors: pd.DataFrame, items: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """The authors' results that a claim is about: those of its items' settings and studies."""
    own = about(authors, claim.item)
    return own[own["setting"].isin([need for name in claim.items for need in items[name]])]


def contradiction(row: Mapping[str, object]) -> str:
    """One of CONTRADICTIONS; empty if a claim fails neither here nor on its authors' numbers."""
    theirs = row["authors_verdict"] == AUTHORS[CONTRADICTED]
    if not theirs and row["verdict"] != CONTRADICTED:
        return ""
    if row["origin"] == OURS:
        return OWN
    if theirs or row["origin"] == CHECK:
        return NUMBERS
    return STATEMENT if row["stands_on"] == SIMULATION else SETTING


def line_of(judge: Callable) -> str:
    """Where a judge begins, and its name: papers/hager2025/judges/fits.py:81 recovered."""
    while isinstance(judge, partial):
        judge = judge.func
    code = judge.__code__
    file = os.path.relpath(code.co_filename, ROOT)
    return f"{file}:{code.co_firstlineno} {code.co_name}"


def _of_seeds(results: pd.DataFrame, seeds: Collection) -> pd.DataFrame:
    """The rows of some seeds; a setting with a single one keeps it."""
    return results[results["seed"].isin(seeds) | (seed_counts(results) == 1)]


def _read_by(claim: Claim, results: pd.DataFrame, fewer: pd.DataFrame) -> pd.DataFrame:
    """The results; those without single queries, which are most, if the judge reads no query."""
    try:
        return results if differs(claim, claim.measure(results), fewer) else fewer
    except (NotTestable, TooFewRuns):
        return results


def _gated(claim: Claim, results: pd.DataFrame, gates: pd.DataFrame) -> Judgement:
    """The verdict on a claim, with regard to the chance of seeds and to gates of fits.

    It is undecided if it would be another without the numbers that rest on fits that fail.
    """
    judgement = decide(claim, results)
    failing = gates[gates["fails"]]
    rows = of_failing(results, failing)
    if not claim.gated or judgement.verdict not in ANSWERS or not rows.any():
        return judgement
    resting = rests_on(claim, results, rows)
    if not np.concatenate(resting).any():
        return judgement
    if decide(claim, results, without=resting).verdict == judgement.verdict:
        return judgement
    here = failing[failing["setting"].isin(results["setting"].unique())]
    settings = [own for _, own in here.groupby("setting", sort=False)]
    alone = [
        own for own in settings
        if any(each.any() for each in rests_on(claim, results, of_failing(results, own)))
    ]  # fmt: skip
    reason = f"rests on fits that fail a gate: {failing_text(pd.concat(alone or settings))}"
    return replace(judgement, verdict=UNDECIDED, reason=reason, cause=GATE)


def judge_all(
    claims: Iterable[Claim],
    results: pd.DataFrame,
    authors: pd.DataFrame,
    gates: pd.DataFrame,
    *,
    items: Mapping[str, Sequence[str]],
    data: Mapping[str, str],
    known: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """Judge every claim on the results that its items are drawn from: a row each, with COLUMNS.

    A judge sees no other results, so `stands_on`, the weakest of the kinds in the column of that
    name, covers all data behind a verdict. Columns of the authors are as in `on_authors`.

    Args:
        authors: `twotowers.claims.published.results`, which has no rows if nothing is published.
        gates: `twotowers.claims.gates.gates_of` the results.
        items: Item -> the settings and studies that it is drawn from, at this scale.
        data: Setting or study -> what it reads, one of `twotowers.claims.data_provenance.KINDS`.
        known: All items of the paper, as `items`, at whatever scale: a scale may leave some out.
    """
    results = results.assign(stands_on=results["setting"].map(data))
    authors = authors.assign(stands_on=REAL)

    @lru_cache(maxsize=1)  # Claims on the same item follow each other.
    def of_needs(needs: tuple[str, ...]) -> tuple[pd.DataFrame, pd.DataFrame]:
        own = results[results["setting"].isin(needs)]
        return own, own[own["query"].isna()] if "query" in own else own

    rows = []
    for claim in claims:
        for name in claim.items:
            check_choice(name, known or items, field=f"claim {claim.id}", what="no item")
        needs = [need for name in claim.items for need in items.get(name, ())]
        if claim.item in items:
            ours = _gated(claim, _read_by(claim, *of_needs(tuple(needs))), gates)
        else:
            ours = Judgement(NOT_TESTABLE, reason=f"{claim.item} {UNMADE}")
        theirs = "", "", ""
        if len(authors) and not claim.against_printed:
            own = authors_of(claim, authors, known or items).dropna(axis="columns", how="all")
            theirs = on_authors(claim, own) if len(own) else theirs
        row = {
            **vars(claim),
            **vars(ours),
            **dict(zip(("authors", "authors_verdict", "authors_held"), theirs, strict=True)),
            "claim": claim.id,
            "expected": claim.expected,
            "stands_on": weakest(data[need] for need in needs or data),
            "judge": line_of(claim.judge),
        }
        row["contradiction"] = contradiction(row)
        rows.append([row[name] for name in COLUMNS])
    return pd.DataFrame(rows, columns=COLUMNS)

"""Every claim of every paper: on results on which it holds, on altered ones, on its authors'.

`claimed/distances.csv` has how far each condition is from its threshold on the claimed results with
seeded noise (number of values, the least, the mean), and `authors.csv` the verdicts on published
numbers. `python -m tests.contract.test_claims_of_papers` writes them anew after a change of judges
or thresholds, and the diff shows what moved.
"""

from functools import cache, partial
from importlib import import_module
from string import ascii_lowercase

import numpy as np
import pandas as pd
import pytest

from tests.claimed import FOLDER, claimed
from twotowers.claims import published
from twotowers.claims.claims import (
    CONTRADICTED,
    NOT_TESTABLE,
    ORIGINS,
    REPRODUCED,
    Claim,
    NotTestable,
    TooFewRuns,
    judge,
    outcome,
)
from twotowers.claims.conditions import SIGNIFICANT, STEPS, UPPER, Condition, short
from twotowers.claims.data_provenance import REAL, STAND_IN, UNVERIFIED
from twotowers.experiment.matrix import item_needs
from twotowers.root import ROOT

PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/claims.py"))
CLAIMS = {
    (paper, claim.id): claim
    for paper in PAPERS
    for claim in import_module(f"papers.{paper}.claims").CLAIMS
}
# What only logs of a store that nobody else has, printed numbers, or runs with queries can tell.
NEVER = {("zhang2023", "15"), ("zhang2023", "16"), ("zhang2023", "33")}
NEVER |= {("hager2024", "1"), ("hager2024", "2"), ("hager2024", "37")}
ON_RESULTS = sorted(CLAIMS.keys() - NEVER)


# Claims on data to which their stand-ins were adjusted, or whose very files are meant.
ADJUSTED = {
    "clax2025": {"3"},
    "chen2024": {"10b", "11a", "11b", "15", "16a", "16b", "19", "27a", "27b"},
    "dehaan2024": {"1", "2", "3", "8", "15"},
    "hager2024": {"7", "22", "26", "27"},
}


@cache
def authors(paper: str) -> pd.DataFrame:
    return published.results(paper).assign(stands_on=REAL)


needs = cache(item_needs)


@cache
def seen(paper: str, number: str) -> pd.DataFrame:
    """The results of a claim's items on which it holds, or those that its authors published.
    Nobody may change them. Only claims of ADJUSTED may depend on the kind of data."""
    if (paper, number) in PUBLISHED:
        return authors(paper).drop(columns="stands_on")
    claim, results = CLAIMS[paper, number], claimed(paper)
    own = results["setting"].isin([need for item in claim.items for need in needs(paper)[item]])
    known = {"stands_on": REAL} if number in ADJUSTED.get(paper, ()) else {}
    return results[own].assign(**known)


def noisy(results: pd.DataFrame) -> pd.DataFrame:
    """So that no two numbers are equal; what is 0 or 1 may be a count."""
    noise = np.random.default_rng(0).normal(scale=0.01, size=len(results))
    values = results["value"]
    return results.assign(value=values.where(values.isin([0, 1]), values * (1 + noise)))


# All that these claims are about is published, and does not bear out two of them.
REFUTED = {("hager2025", name) for name in ("6f", "9b")}
PUBLISHED = {
    name for name in CLAIMS if name[0] == "hager2025" and int(name[1].rstrip(ascii_lowercase)) <= 10
}


def distances() -> pd.DataFrame:
    rows = []
    for name in ON_RESULTS:
        claim = CLAIMS[name]
        for place, (each, measured) in enumerate(claim.measure(noisy(seen(*name)))):
            if each.judged:
                slack = each.slack(measured).to_numpy(float).clip(-1e9, 1e9)
                rows.append((*name, place, len(slack), slack.min(), slack.mean()))
    return pd.DataFrame(rows, columns=["paper", "claim", "condition", "values", "least", "mean"])


def on_the_authors() -> pd.DataFrame:
    """What a claim's judge says of its authors' numbers."""
    rows = []
    for (paper, number), claim in CLAIMS.items():
        theirs = published.about(authors(paper), claim.item)
        rows.append((paper, number, judge(claim, theirs).verdict))
    return pd.DataFrame(rows, columns=["paper", "claim", "verdict"])


RECORDED = {"distances": distances, "authors": on_the_authors}


@pytest.mark.parametrize("name", RECORDED)
def test_judges_measure_what_is_recorded(name):
    recorded = pd.read_csv(FOLDER / f"{name}.csv", dtype={"claim": str}, keep_default_na=False)
    pd.testing.assert_frame_equal(RECORDED[name](), recorded, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ON_RESULTS, ids=" ".join)
def test_a_verdict_turns_at_each_threshold(name):
    claim = CLAIMS[name]
    measured = claim.measure(seen(*name))
    judgement = outcome(claim, measured)
    assert judgement.verdict == (CONTRADICTED if name in REFUTED else REPRODUCED), judgement
    assert judgement.measured
    within = [(each, moved(each, found, 1)) for each, found in measured]
    assert outcome(claim, within).verdict == REPRODUCED
    for place, (each, found) in enumerate(within):
        if each.judged:
            beyond = [*within[:place], (each, moved(each, found, -1)), *within[place + 1 :]]
            expected = NOT_TESTABLE if each.otherwise else CONTRADICTED
            assert outcome(claim, beyond).verdict == expected, each.words


def moved(condition: Condition, measured, side: int):
    """A number close to the threshold, on the side that meets the condition, or on the other."""
    if not condition.judged:
        return measured
    if not condition.relation:
        return side > 0
    if condition.relation in STEPS:
        return [0, side * STEPS[condition.relation]]
    if condition.relation == SIGNIFICANT:
        return side
    unit = float(np.ravel(measured[1])[0]) if condition.of else 1.0
    off = 0 if condition.relation == "exactly" and side > 0 else 1e-6
    number = condition.threshold * unit + off * side * (-1 if condition.relation in UPPER else 1)
    return (number, unit) if condition.of else number


@pytest.mark.parametrize("name", ON_RESULTS, ids=" ".join)
def test_a_judge_says_what_it_lacks(name):
    """Without its first or last setting it answers, or names what is missing; so it does on a
    single seed."""
    claim, results = CLAIMS[name], seen(*name)
    settings = results["setting"].unique()
    ends = settings[:: max(1, len(settings) - 1)]
    parts = [results[results["setting"] != one] for one in ends]
    parts = [results.iloc[:0], *parts, results[results["seed"] == 0]]
    lacking = [str(answer) for answer in map(partial(answered, claim), parts) if answer]
    assert lacking
    assert all(lacking)


def answered(claim: Claim, results: pd.DataFrame) -> NotTestable | TooFewRuns | None:
    try:
        claim.measure(results)
    except (NotTestable, TooFewRuns) as lacking:
        return lacking
    return None


@pytest.mark.parametrize(
    ("paper", "kind"), [*((paper, STAND_IN) for paper in ADJUSTED), ("chen2024", UNVERIFIED)]
)
def test_what_was_adjusted_is_no_evidence(paper, kind):
    """Other judges cannot ask: `seen` does not tell them."""
    for number in ADJUSTED[paper]:
        on_other = seen(paper, number).assign(stands_on=kind)
        assert judge(CLAIMS[paper, number], on_other).verdict == NOT_TESTABLE, number


def test_what_a_law_was_solved_for_is_adjusted():
    solved = {(paper, number) for (paper, number), claim in CLAIMS.items() if claim.solved_for}
    assert solved <= {(paper, number) for paper, names in ADJUSTED.items() for number in names}


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_have_unique_names_whole_texts_and_items_that_there_are(paper):
    claims = import_module(f"papers.{paper}.claims").CLAIMS
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        texts = (claim.item, claim.statement, claim.where, claim.expected)
        assert all(texts), claim.id
        assert "{" not in "".join(texts), claim.id
        assert {*claim.items} <= needs(paper).keys(), claim.id
        assert claim.origin in ORIGINS
        assert claim.judged, claim.id
        # No digit of a threshold is lost in words.
        given = [each.threshold for each in claim.conditions if each.threshold is not None]
        assert [float(short(each)) for each in given] == given, claim.id


if __name__ == "__main__":
    for name, table in RECORDED.items():
        table().to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.9g")

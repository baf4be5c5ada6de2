"""What a claim fails on. Each sentence that fails names such a claim, with a table of numbers."""

from importlib import import_module

import pytest

from twotowers.claims import judging, published
from twotowers.claims.claims import CHECK, CONTRADICTED, OURS, PAPER, REPRODUCED, UNDECIDED, judge
from twotowers.claims.data_provenance import REAL, SIMULATION, STAND_IN
from twotowers.claims.findings import measured
from twotowers.experiment.matrix import item_needs
from twotowers.root import ROOT

PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/findings.py"))


@pytest.mark.parametrize("paper", PAPERS)
def test_a_finding_on_the_authors_numbers_is_of_a_claim_that_fails_on_them(paper):
    claims = {claim.id: claim for claim in import_module(f"papers.{paper}.claims").CLAIMS}
    findings = import_module(f"papers.{paper}.findings").FINDINGS
    assert {each.claim for each in findings} <= claims.keys()
    authors = published.results(paper).assign(stands_on=REAL)
    shown = measured(findings, authors.iloc[:0], authors)
    for each in shown:
        assert "{" not in each["wording"]
        assert len({len(row) for row in each["table"]}) == 1
        own = judging.authors_of(claims[each["claim"]], authors, item_needs(paper))
        # An arguable one may be about more than its claim asks.
        failing = judge(claims[each["claim"]], own).verdict == CONTRADICTED
        assert failing or each["arguable"], each["claim"]
    on_theirs = {"hager2025": 2, "hager2024": 1, "zhang2023": 4}
    assert len(shown) == on_theirs.get(paper, 0)


@pytest.mark.parametrize(
    ("kind", "origin", "verdict", "authors", "stands_on"),
    [
        ("", PAPER, REPRODUCED, "holds", STAND_IN),
        ("", PAPER, UNDECIDED, "undecided", STAND_IN),
        (judging.NUMBERS, PAPER, REPRODUCED, "fails", STAND_IN),
        (judging.NUMBERS, CHECK, CONTRADICTED, "holds", SIMULATION),
        (judging.STATEMENT, PAPER, CONTRADICTED, "holds", SIMULATION),
        (judging.SETTING, PAPER, CONTRADICTED, "holds", STAND_IN),
        (judging.OWN, OURS, CONTRADICTED, "", SIMULATION),
    ],
)
def test_what_a_claim_fails_on(kind, origin, verdict, authors, stands_on):
    row = {"origin": origin, "verdict": verdict, "authors_verdict": authors}
    assert judging.contradiction({**row, "stands_on": stands_on}) == kind

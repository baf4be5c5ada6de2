"""Sentences that fail: each names a claim that fails, and has a table where it can be computed."""

from importlib import import_module

import pytest

from twotowers.claims import published
from twotowers.claims.claims import CONTRADICTED, judge
from twotowers.claims.data_provenance import REAL
from twotowers.claims.findings import measured
from twotowers.claims.judging import authors_of
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
        own = authors_of(claims[each["claim"]], authors, item_needs(paper))
        # An arguable one may be about more than its claim asks.
        failing = judge(claims[each["claim"]], own).verdict == CONTRADICTED
        assert failing or each["arguable"], each["claim"]
    on_theirs = {"hager2025": 2, "hager2024": 1, "zhang2023": 4}
    assert len(shown) == on_theirs.get(paper, 0)

"""What the claims of every paper have in common."""

from importlib import import_module

import pandas as pd
import pytest

from twotowers.claims.claims import NOT_TESTABLE, judge
from twotowers.root import ROOT

PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/claims.py"))
CLAIMS = {
    f"{paper} {claim.id}": claim
    for paper in PAPERS
    for claim in import_module(f"papers.{paper}.claims").CLAIMS
}
COLUMNS = ["setting", "metric", "position", "value", "seed", "sessions", "estimator"]


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_judge_without_its_data_says_so(name):
    judgement = judge(CLAIMS[name], pd.DataFrame(columns=COLUMNS))
    assert judgement.verdict == NOT_TESTABLE
    assert judgement.reason


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_have_unique_names_and_are_fully_told(paper):
    claims = import_module(f"papers.{paper}.claims").CLAIMS
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        texts = (claim.item, claim.statement, claim.where, claim.expected)
        assert all(texts), claim.id
        assert "{" not in "".join(texts), claim.id

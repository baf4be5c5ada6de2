"""The chapter on CLAX: its study, its claims and its published numbers."""

import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.orders import HIDDEN, between_divisions, correlations
from papers.clax2025.studies.em_gradient import run
from tests.claimed import altered, claimed, claimed_of
from twotowers.claims.claims import CONTRADICTED, REPRODUCED, judge

JUDGED = {claim.id: claim for claim in CLAIMS}


@pytest.fixture(scope="module")
def study():
    return run(None, seed=1, pages=300).assign(setting="em_gradient", seed=1)


def test_em_and_gradient_agree_in_every_model(study):
    assert set(study["model"]) == set(HIDDEN)
    for claim in ("8", "9", "10", "41"):
        assert judge(JUDGED[claim], study).verdict == REPRODUCED, claim


METRICS = ("mean_perplexity", "mean_conditional_perplexity")
RESULTS = claimed("clax2025")


def starting(*prefixes: str) -> pd.DataFrame:
    """Results on which every claim holds, of the settings that start like this."""
    settings = RESULTS["setting"]
    return claimed_of("clax2025", settings[settings.str.startswith(prefixes)].unique())


def compressed() -> pd.DataFrame:
    found = starting("gradient-", "hashed-", "quotient-").assign(position=pd.NA, model="a kind")
    return found[found["metric"].isin(METRICS)]


def test_orders_that_turn_have_a_negative_tau():
    found = compressed()
    taus = correlations(found).set_index(["compression", "ratio", "metric"])["value"]
    np.testing.assert_allclose(taus.xs(METRICS[1], level="metric"), 1)
    np.testing.assert_allclose(between_divisions(found), 1)
    lane = {"metric": METRICS[0], "tower_ratio": 1000}
    turned = altered(found, lambda rows: 5 - rows["value"], **lane)
    taus = correlations(turned).set_index(["compression", "ratio", "metric"])["value"]
    assert taus["hashed", 1000.0, METRICS[0]] < 0
    assert taus["hashed", 10.0, METRICS[0]] == pytest.approx(1)


def test_coverage_is_that_of_all_seeds():
    """One seed alone is below the bound of 31, and the mean of two is not."""
    lane = {"setting": "interval-dbn", "metric": "coverage", "part": "satisfaction"}
    for low, verdict in ((0.90, REPRODUCED), (0.88, CONTRADICTED)):
        second = altered(starting("interval-"), lambda rows: low, **lane)  # noqa: B023
        both = pd.concat([starting("interval-"), second.assign(seed=1)], ignore_index=True)
        assert judge(JUDGED["31"], both).verdict == verdict

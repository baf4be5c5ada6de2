"""The chapter on CLAX: its study, its claims and its published numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.orders import HIDDEN, between_divisions, correlations
from papers.clax2025.studies.em_gradient import click_loss_difference, posteriors, run
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


def test_posteriors_are_those_of_tf_ranking():
    # The example of its test of ClickEMLoss.
    with jax.enable_x64(True):
        relevance, examination = jnp.array([3.0, 2, 1]), jnp.array([3.0, 3, 4])
        relevant, examined = posteriors(relevance, examination, jnp.array([True, False, False]))
        np.testing.assert_allclose(examined, [1, 0.705384, 0.93624], atol=1e-5)
        np.testing.assert_allclose(relevant, [1, 0.259496, 0.046613], atol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        # The prior instead of the posterior; one that forgets the clicks; both swapped.
        lambda a, e, clicked: (jax.nn.sigmoid(a), jax.nn.sigmoid(e)),
        lambda a, e, clicked: posteriors(a, e, False),
        lambda a, e, clicked: posteriors(a, e, clicked)[::-1],
    ],
)
def test_wrong_posteriors_have_another_gradient(study, wrong):
    clicks = np.arange(60).reshape(10, 6) % 3 == 0
    assert click_loss_difference(clicks, 1) < 1e-12
    found = click_loss_difference(clicks, 1, wrong)
    results = altered(study, lambda rows: found, model="pbm", metric="click_loss_difference")
    assert judge(JUDGED["41"], results).verdict == CONTRADICTED


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

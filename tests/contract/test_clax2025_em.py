"""EM against gradient descent: ClickEMLoss, conditional perplexity by rank, and 50 rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.studies.em_gradient import click_loss_difference, posteriors
from twotowers.claims.claims import CONTRADICTED, REPRODUCED, judge

JUDGED = {claim.id: claim for claim in CLAIMS}


def study(difference):
    row = ("em_gradient", "pbm", "click_loss_difference", difference, 1)
    return pd.DataFrame([row], columns=["setting", "model", "metric", "value", "seed"])


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
def test_wrong_posteriors_have_another_gradient(wrong):
    clicks = np.arange(60).reshape(10, 6) % 3 == 0
    own = click_loss_difference(clicks, 1)
    assert own < 1e-12
    assert judge(JUDGED["41"], study(own)).verdict == REPRODUCED
    found = click_loss_difference(clicks, 1, wrong)
    assert judge(JUDGED["41"], study(found)).verdict == CONTRADICTED

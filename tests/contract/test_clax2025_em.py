"""EM against gradient descent: ClickEMLoss, conditional perplexity by rank, and 50 rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.items import priors
from papers.clax2025.names import HIDDEN, NINTH
from papers.clax2025.studies.em_gradient import click_loss_difference, posteriors
from tests.items import experiment
from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, judge

JUDGED = {claim.id: claim for claim in CLAIMS}
ITEMS = experiment("clax2025", "paper").items


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


def by_rank(half=0.01, ninth=0.03, rounds=0.0):
    """Conditional perplexities by rank; those of EM are off by so much with either prior."""
    rows = []
    for name in HIDDEN:
        for position in range(1, 11):
            value = 1.5 - position / 30
            rows += [
                (f"gradient-{name}", np.nan, "conditional_perplexity", position, value),
                (f"em-{name}", 0.5, "conditional_perplexity", position, value - half),
                (f"em-{name}", NINTH, "conditional_perplexity", position, value + ninth),
            ]
        for metric in ("mean_perplexity", "mean_conditional_perplexity"):
            rows += [
                (f"em-{name}", NINTH, metric, pd.NA, 1.3),
                (f"em-{name}", 0.5, metric, pd.NA, 1.2),
                (f"rounds-{name}", NINTH, metric, pd.NA, 1.3 + rounds),
            ]
    columns = ["setting", "prior_mean", "metric", "position", "value"]
    first = pd.DataFrame(rows, columns=columns).assign(seed=1)
    # A division of the log without the 50 rounds.
    second = first[~first["setting"].str.startswith("rounds")]
    return pd.concat([first, second.assign(seed=2, value=second["value"] + 0.01)])


def test_ranks_against_gradient_descent_are_told():
    found = by_rank()
    assert judge(JUDGED["42"], found).verdict == REPRODUCED
    assert judge(JUDGED["42"], by_rank(half=0.04)).verdict == CONTRADICTED
    at_one = (found["setting"] == "em-ccm") & (found["prior_mean"] == 0.5) & (found.position == 3)
    moved = judge(JUDGED["42"], found.assign(value=found["value"].mask(at_one, 1.6)))
    assert moved.verdict == CONTRADICTED
    assert "(CCM, rank 3)" in moved.measured
    assert moved.measured.endswith("1 of 50 against it")


def test_rounds_are_compared_on_their_own_division():
    found = by_rank()
    assert judge(JUDGED["43"], found).verdict == REPRODUCED
    for claim, setting in (("42", "gradient-dbn"), ("43", "rounds-dbn"), ("43", "em-dbn")):
        lacking = found[found["setting"] != setting]
        assert judge(JUDGED[claim], lacking).verdict == NOT_TESTABLE, claim
    table = priors.table(found[found["setting"].isin(ITEMS["rounds"].needs)], None)
    assert set(table["n"]) == {1}
    assert "--" in priors.tex(table)

"""The softmax loss of lists, against its closed form: a table of scores has an exact optimum."""

import numpy as np
import pytest

from tests.unit.test_method_kinds import NUMBERS, RELEVANCE, TRAINING, USER, task
from twotowers.logs.counts import Counts
from twotowers.methods import softmax
from twotowers.models.position_based import PositionBased

LONG = TRAINING | {"epochs": 80, "patience": 80}
# A log whose first documents are shown at the top more often.
SKEWED = np.where(np.eye(5, dtype=bool), 900, 25)


def skewed() -> Counts:
    shown = np.broadcast_to(SKEWED, (1, *RELEVANCE.shape, 5)).copy()
    clicked = np.round(1000 * shown * USER.chance(RELEVANCE, 5))
    # As logs keep them: unsigned.
    return Counts((1000 * shown).astype(np.uint32), clicked.astype(np.uint32))


def centred(values):
    return values - values.mean(1, keepdims=True)


@pytest.mark.parametrize("propensities", ["none", "true"])
def test_scores_are_logarithms_of_weighed_clicks(propensities):
    counts = skewed()
    given = task(counts, training=LONG, users=[USER])
    (found,) = softmax.fit(given, propensities=propensities)
    weights = 1 / np.arange(1, 6) if propensities == "true" else np.ones(5)
    clicks = (counts.clicks[0] / weights).sum(-1)
    np.testing.assert_allclose(centred(found.scores(NUMBERS)), centred(np.log(clicks)), atol=0.05)
    truth = centred(np.log(USER.chance(RELEVANCE, 1)[..., 0]))
    apart = np.abs(centred(found.scores(NUMBERS)) - truth).max()
    assert (apart < 0.05) == (propensities == "true")
    assert len(found.history) == LONG["epochs"]
    assert found.bias is None
    assert found.cell_losses is None


def test_lanes_have_logs_and_users_of_their_own():
    second = PositionBased(eta=0)
    both = Counts(
        np.concatenate([skewed().impressions] * 2),
        np.concatenate([skewed().clicks, skewed().impressions * second.chance(RELEVANCE, 5)]),
    )
    lanes = [(1, {}), (0, {})]
    given = task(both, lanes=lanes, training=LONG, users=[USER, second])
    truth = centred(np.log(USER.chance(RELEVANCE, 1)[..., 0]))
    for found in softmax.fit(given, propensities="true"):
        np.testing.assert_allclose(centred(found.scores(NUMBERS)), truth, atol=0.05)

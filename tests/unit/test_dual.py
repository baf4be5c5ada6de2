"""The dual learning algorithm with towers, against its formulas session by session."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.unit.test_method_kinds import NUMBERS, POSITIONS, RELEVANCE, TRAINING, USER, task
from twotowers.methods import dla
from twotowers.methods.dla import HIGHEST, DualTowers
from twotowers.towers.dense import DenseTower
from twotowers.towers.two_towers import two_towers

RNG = np.random.default_rng(3)
LENGTHS, LENGTH = (4, 2), 4
FEATURES = RNG.normal(size=(2, LENGTH, 3)).astype(np.float32)
ORDERS = [RNG.permutation(n) for n in LENGTHS]
SESSIONS = [[RNG.random(n) < 0.5 for _ in range(6)] for n in LENGTHS]
EXAMINATION = np.array([1.3, -0.1, -0.9, -1.2])
KEY = jax.random.key(0)


def dual(**options) -> DualTowers:
    towers = two_towers("linear", width=3, positions=LENGTH, seed=1, **options)
    if isinstance(towers.bias, nnx.Embed):
        towers.bias.embedding[...] = jnp.asarray(EXAMINATION[:, None], jnp.float32)
    return DualTowers(towers)


def counted():
    """Impressions and clicks of the sessions. Each query has one ranking."""
    shown, clicked = np.zeros((2, 2, LENGTH, LENGTH), int)
    for query, (order, sessions) in enumerate(zip(ORDERS, SESSIONS, strict=True)):
        for clicks in sessions:
            shown[query, order, np.arange(len(order))] += 1
            clicked[query, order, np.arange(len(order))] += clicks
    return jnp.asarray(shown), jnp.asarray(clicked)


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def by_sessions(score, examination, weights=None):
    """Both losses, session by session. `weights` are scores and examination."""
    total = np.zeros(2)
    for query, (order, sessions) in enumerate(zip(ORDERS, SESSIONS, strict=True)):
        n = len(order)
        r, o = softmax(score[query][order]), softmax(examination[:n])
        at_score, at_examination = (score, examination) if weights is None else weights
        fixed_r = softmax(at_score[query][order])
        fixed_o = softmax(at_examination[:n])
        for clicks in sessions:
            for k in np.flatnonzero(clicks):
                total[query] -= min(fixed_o[0] / fixed_o[k], HIGHEST) * np.log(r[k])
                total[query] -= min(fixed_r[0] / fixed_r[k], HIGHEST) * np.log(o[k])
    return total


def test_losses_of_counts_are_those_of_sessions():
    model = dual()
    score = np.asarray(model.towers.relevance(FEATURES), float)
    found = model.cell_losses(FEATURES, *counted(), KEY).sum((-2, -1))
    np.testing.assert_allclose(found, by_sessions(score, EXAMINATION), rtol=1e-5)
    # The highest weight is reached. Otherwise the test would not notice its absence.
    assert (softmax(EXAMINATION)[0] / softmax(EXAMINATION)).max() > HIGHEST


def test_gradients_take_weights_for_constants():
    model = dual()
    score = np.asarray(model.towers.relevance(FEATURES), float)
    gradient = nnx.grad(lambda model: model.cell_losses(FEATURES, *counted(), KEY).sum())(model)
    found = gradient["towers"]["bias"]["embedding"][...][:, 0]
    for position in range(LENGTH):
        step = 1e-5 * np.eye(LENGTH)[position]
        ends = [
            by_sessions(score, EXAMINATION + sign * step, (score, EXAMINATION)).sum()
            for sign in (1, -1)
        ]
        np.testing.assert_allclose(found[position], (ends[0] - ends[1]) / 2e-5, rtol=1e-3)


def test_what_is_watched_is_where_clicks_fall():
    model = dual()
    score = np.asarray(model.towers.relevance(FEATURES), float)
    expected = []
    for query, (order, sessions) in enumerate(zip(ORDERS, SESSIONS, strict=True)):
        chance = softmax(score[query][order] + EXAMINATION[: len(order)])
        expected.append(-sum(np.log(chance)[clicks].sum() for clicks in sessions))
    found = model.cell_losses(FEATURES, *counted()).sum((-2, -1))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_queries_that_nobody_asked_cost_nothing():
    nothing = jnp.zeros((2, LENGTH, LENGTH), int)
    for key in (KEY, None):
        assert (np.asarray(dual().cell_losses(FEATURES, nothing, nothing, key)) == 0).all()


@pytest.mark.parametrize(
    "examination",
    [None, partial(DenseTower, layers=[8], activation="tanh")],
    ids=["table", "tower"],
)
def test_it_finds_examination_and_relevance_of_a_position_based_user(examination):
    """Every document was shown everywhere, so that both are identified."""
    training = TRAINING | {"epochs": 60, "patience": 60}
    given = task(lanes=[(0, {})], training=training, examination={"examination": examination})
    (found,) = dla.fit(given)
    np.testing.assert_allclose(found.bias - found.bias[0], -np.log(np.arange(1, 6)), atol=0.05)
    score = found.scores(NUMBERS)
    truth = np.log(USER.chance(RELEVANCE, 1)[..., 0])
    level = (score - truth).mean(1, keepdims=True)
    np.testing.assert_allclose(score - level, truth, atol=0.1)
    assert len(found.history) == 60
    assert found.bias.shape == (POSITIONS,)

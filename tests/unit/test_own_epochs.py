"""Epochs of a lane's own rows, queries that count alike, and examination that is known."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.tree_util import register_dataclass

from tests.tasks import task_of
from tests.training import short
from twotowers.fitting.gradient import FitSettings, draw_epoch, fit, own_units
from twotowers.logs.counts import Counts
from twotowers.methods import ips, likelihood
from twotowers.methods.descent import count_loss
from twotowers.methods.task import CERTAIN, Split, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.models.position_based import PositionBased
from twotowers.towers.lane import KNOWN

HAS = np.array([[1, 0, 1, 1, 0, 1, 1], [0, 0, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]], bool)
SLOPES = jnp.arange(1.0, 8.0)


class Number(nnx.Module):
    def __init__(self):
        self.x = nnx.Param(jnp.zeros(()))


@register_dataclass
@dataclass(frozen=True)
class Slopes:
    """Unit u of a lane that has it costs slope_u x, and nothing else does."""

    has_: jax.Array
    slopes: jax.Array

    @property
    def units(self):
        return len(self.slopes)

    def has(self, lane):
        return self.has_[lane]

    def losses(self, model, index, lane, key=None):
        return jnp.where(self.has_[lane, index], self.slopes[index], 0) * model.x[...]


def after(epochs: int, batch: int, **changes):
    settings = FitSettings(**short(0.5, batch=batch, epochs=epochs, optimizer="sgd", **changes))
    objective = Slopes(jnp.asarray(HAS), SLOPES)
    return fit(Number(), objective, objective, settings, lanes=len(HAS), seed=0)


@pytest.mark.parametrize("batch", [1, 2, 3, 50])
def test_an_epoch_is_a_pass_over_the_lanes_own_units(batch):
    # A step is by the mean over what the batch has, even if it is the last and smaller.
    found = after(epochs=2, batch=batch)
    own, expected = own_units(Slopes(jnp.asarray(HAS), SLOPES), len(HAS)), np.zeros(len(HAS))
    settings = FitSettings(**short(0.5, batch=batch, epochs=2))
    for epoch in range(2):
        orders, _ = draw_epoch(0, epoch, HAS.shape[1], settings, own)
        for lane, (has, order) in enumerate(zip(HAS, orders, strict=True)):
            for start in range(0, has.sum(), batch):
                slopes = np.asarray(SLOPES)[order[: has.sum()][start : start + batch]]
                expected[lane] -= 0.5 * has.mean() * slopes.mean()
    np.testing.assert_allclose(found.state["x"].get_value(), expected, rtol=1e-6)


def test_the_watched_loss_is_the_mean_over_all_units():
    found = after(epochs=1, batch=50)
    x = np.asarray(found.state["x"].get_value())
    expected = (HAS * SLOPES).sum(1) / HAS.shape[1] * x
    np.testing.assert_allclose(found.loss, expected, rtol=1e-6)


def test_units_are_shuffled_and_a_lanes_own_come_first():
    own = own_units(Slopes(jnp.asarray(HAS), SLOPES), len(HAS))
    orders = set()
    for draw in range(20):
        orders_of_lanes = own.shuffled(np.random.default_rng(draw))
        for lane, (has, order) in enumerate(zip(HAS, orders_of_lanes, strict=True)):
            assert set(order[: has.sum()]) == set(np.flatnonzero(has))
            assert sorted(order) == list(range(len(has)))
            if lane == 0:
                orders.add(tuple(order[: has.sum()]))
    assert len(orders) > 10


# Clicks on lists: a lane per log, each asks other queries.

POSITIONS, LOGS, QUERIES = 4, 2, 6


@pytest.fixture(scope="module")
def split() -> Split:
    rng = np.random.default_rng(0)
    where = np.arange(POSITIONS) < np.array([4, 3, 4, 2, 4, 1])[:, None]
    relevance = np.where(where, rng.integers(0, 5, where.shape), 0).astype(np.float32)
    asked = np.array([[7, 0, 2, 1, 3, 5], [900, 700, 0, 400, 100, 300]])
    position = np.argsort(np.argsort(np.where(where, rng.random(where.shape), 2)))
    shown = np.where(where, asked[..., None], 0)[..., None] * (
        position[..., None] == np.arange(POSITIONS)
    )
    chance = PositionBased().chance(relevance, POSITIONS)
    counts = Counts(shown, rng.binomial(shown, chance))
    inputs = rng.normal(size=(*where.shape, 3)).astype(np.float32)
    return Split(inputs, where, relevance, counts)


def rows_of(split: Split) -> Counts:
    counts, document = split.counts, np.arange(POSITIONS)
    at = counts.impressions.argmax(-1)
    columns = (
        np.take_along_axis(each, at[..., None], -1)[..., 0]
        for each in (counts.impressions, counts.clicks)
    )
    return Counts(*columns, np.broadcast_to(document, at.shape), at)


class Scorer(nnx.Module):
    """A model whose loss of a cell is that of one logit."""

    def row_losses(self, inputs, document, position, shown, clicked, key=None):
        logit = jnp.take_along_axis(inputs[..., 0], document, axis=-1)
        return shown * jnp.logaddexp(0, logit) - clicked * logit

    def cell_losses(self, inputs, shown, clicked, key=None):
        logit = inputs[..., 0][..., None]
        return shown * jnp.logaddexp(0, logit) - clicked * logit


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("weighting", ["impressions", "queries"])
def test_impressions_count_alike_or_queries_by_the_click_rates_of_their_documents(
    split, weighting, listed
):
    if listed:
        split = Split(split.inputs, split.where, split.relevance, rows_of(split))
    objective = count_loss(split, [(log, weighting) for log in range(LOGS)])
    logit = split.inputs[..., 0]
    for log in range(LOGS):
        found = objective.losses(Scorer(), jnp.arange(QUERIES), jnp.int32(log)).mean()
        counts = split.counts.of_log(log)
        shown, clicks = counts.impressions, counts.clicks
        if not listed:
            shown, clicks = shown.sum(-1), clicks.sum(-1)
        number = counts.sessions.sum()
        if weighting == "queries":
            clicks, shown = clicks / np.maximum(shown, 1), shown > 0
            number = (counts.sessions > 0).sum()
        total = (shown * np.logaddexp(0, logit) - clicks * logit).sum()
        assert float(found) == pytest.approx(total / number, rel=1e-5)


def task(split, *, model, examination=None, users=None) -> Task:
    return task_of(
        split,
        POSITIONS,
        model=model,
        tower="linear",
        lanes=[(log, {}) for log in range(LOGS)],
        training=short(0.02, batch=2, epochs=30, optimizer="adam"),
        users=users or [PositionBased()] * LOGS,
        examination={"examination": examination, "dropout": 0.0},
    )


def test_known_examination_is_each_users_own_and_stays(split):
    users = [PositionBased(eta=0.5), PositionBased(eta=2)]
    given = task(split, model=PositionBased(), examination=KNOWN, users=users)
    for found, user in zip(likelihood.fit(given), users, strict=True):
        bias = found.bias - found.bias[0]
        np.testing.assert_allclose(bias, np.log(user.examined(POSITIONS)), atol=1e-5)
    free = likelihood.fit(task(split, model=PositionBased()))
    assert not np.allclose(free[0].bias, found.bias, atol=0.1)


def test_without_bias_click_model_ips_and_naive_model_are_one(split):
    # Proposition 1, of the library's own losses: whoever examines everything has propensity 1.
    users = [PositionBased(eta=0)] * LOGS
    naive = likelihood.fit(task(split, model=DocumentRate(), users=users))
    weighted = ips.fit(task(split, model=DocumentRate(), users=users))
    pbm = likelihood.fit(task(split, model=PositionBased(), examination=KNOWN, users=users))
    for one, other, third in zip(naive, weighted, pbm, strict=True):
        scores = one.scores(split.inputs)
        np.testing.assert_allclose(other.scores(split.inputs), scores, atol=1e-5)
        # Examination is certain to 1e-6 only.
        assert CERTAIN == 15
        np.testing.assert_allclose(third.scores(split.inputs), scores, atol=1e-3)

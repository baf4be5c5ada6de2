"""Training: batches, early stopping per lane, independent lanes, and the optimum."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.tree_util import register_dataclass

from tests.simulated_logs import cells_of, simulate_sessions
from twotowers.files.rankings import mask
from twotowers.fitting import gradient as fitting
from twotowers.fitting import lane_steps
from twotowers.fitting.gradient import FitSettings, batch_order, fit
from twotowers.fitting.lane_steps import mean_loss
from twotowers.fitting.newton import fit_embedding
from twotowers.logs.counts import Counts
from twotowers.methods.descent import count_loss
from twotowers.methods.task import Split
from twotowers.models.additive import Additive
from twotowers.towers.two_towers import two_towers

SETTINGS = FitSettings(
    learning_rate=0.01, weight_decay=0.0, batch=2, steps=5, epochs=8, patience=2, min_delta=0.1
)


# Batches.


@pytest.mark.parametrize(
    ("units", "batch", "steps"), [(10, 3, 7), (7, 7, 3), (5, 12, 2), (100, 8, 3), (1, 4, 2)]
)
def test_batches_use_all_units_equally(units, batch, steps):
    order = batch_order(np.random.default_rng(0), units, batch, steps)
    assert order.shape == (steps, batch)
    used = np.bincount(order.ravel(), minlength=units)
    assert len(used) == units
    assert used.max() - used.min() <= 1
    # Each pass is a permutation.
    whole = order.ravel()[: order.size // units * units].reshape(-1, units)
    np.testing.assert_array_equal(
        np.sort(whole, axis=1), np.tile(np.arange(units), (len(whole), 1))
    )


# Early stopping, on a model of one number x. Its loss is x, and Adam's step on a constant gradient
# is the learning rate. So x falls by the same amount each step and tells the epoch, and the
# validation loss can be any sequence in a table.


class Falling(nnx.Module):
    def __init__(self):
        self.x = nnx.Param(jnp.zeros(()))


@register_dataclass
@dataclass(frozen=True)
class Height:
    """Its loss is x."""

    ones: jax.Array

    @property
    def units(self):
        return len(self.ones)

    def losses(self, model, index, lane, key=None):
        return self.ones[index] * model.x[...]


@register_dataclass
@dataclass(frozen=True)
class Table:
    """The loss of lane l after epoch e is rows[l, e - 1]. Units differ around this mean."""

    rows: jax.Array

    @property
    def units(self):
        return 3

    def losses(self, model, index, lane, key=None):
        epoch = jnp.round(-model.x[...] / (SETTINGS.learning_rate * SETTINGS.steps))
        return self.rows[lane, epoch.astype(int) - 1] + jnp.array([-1.0, 0.0, 1.0])[index]


CURVES = {
    # every epoch is better
    "improving": [8, 7, 6, 5, 4, 3, 2, 1],
    # 2 bad epochs after the second: it stops before the loss would improve
    "worse": [5, 4, 4.5, 4.5, 0, 0, 0, 0],
    # .06 is less than min_delta .1, but two such steps are more and reset patience
    "slow": [5, 4.94, 4.88, 4.82, 4.81, 4.80, 0, 0],
    # single bad epochs do not stop it; the best epoch is not the last
    "patient": [5, 6, 4, 5, 3, 4, 2, 3],
    # NaN is no improvement
    "not finite": [5, 4, np.nan, np.inf, 0, 0, 0, 0],
}
STOPPED = {
    "improving": (8, 8),  # epochs trained, best epoch
    "worse": (4, 2),
    "slow": (5, 3),
    "patient": (8, 7),
    "not finite": (4, 2),
}


def fit_curves(names, **changes):
    rows = jnp.array([CURVES[name] for name in names], jnp.float32)
    settings = replace(SETTINGS, **changes)
    return fit(Falling(), Height(jnp.ones(6)), Table(rows), settings, lanes=len(names), seed=0)


def test_early_stopping_of_each_lane():
    result = fit_curves(CURVES)
    for lane, name in enumerate(CURVES):
        trained, best = STOPPED[name]
        curve = np.array(CURVES[name])
        assert result.epochs[lane] == trained, name
        np.testing.assert_allclose(result.loss[lane], curve[best - 1], rtol=1e-5)
        # The parameters are those of the best epoch, not the last.
        fallen = -SETTINGS.learning_rate * SETTINGS.steps * best
        np.testing.assert_allclose(result.model(lane).x[...], fallen, rtol=1e-4)
        history = np.where(np.arange(8) < trained, curve, np.nan)
        np.testing.assert_allclose(result.history[:, lane], history, rtol=1e-5)


def test_patience_and_min_delta():
    assert fit_curves(["worse"], patience=1).epochs.tolist() == [3]
    assert fit_curves(["worse"], patience=3).epochs.tolist() == [8]
    assert fit_curves(["slow"], min_delta=0.0, epochs=6).loss[0] == pytest.approx(4.80)


def test_averaged_parameters_are_validated_and_kept_and_steps_go_on_from_the_last():
    height = Height(jnp.ones(6))
    settings = replace(SETTINGS, averaged=True, epochs=3)
    result = fit(Falling(), height, height, settings, lanes=1, seed=0)
    x, average, epochs = 0.0, 0.0, []
    for step in range(1, 3 * settings.steps + 1):
        x -= settings.learning_rate
        average += (x - average) / settings.steps
        if step % settings.steps == 0:
            epochs.append(average)
    np.testing.assert_allclose(result.history[:, 0], epochs, rtol=1e-4)
    # Nothing falls by min_delta .1 again after the first epoch.
    np.testing.assert_allclose(result.model(0).x[...], epochs[0], rtol=1e-4)


# Lanes, seeds and bad data.


@pytest.mark.parametrize(("lanes", "block"), [(1, 1), (4, 4), (5, 3), (6, 3), (12, 4), (28, 4)])
def test_blocks_of_lanes_are_even(lanes, block):
    """Lanes that only fill the last block cost as much as others."""
    assert fitting._block(lanes) == block


FEATURES = np.random.default_rng(0).normal(size=(6, 3, 4)).astype(np.float32)
RELEVANCE = FEATURES @ np.array([1.0, -1.0, 0.5, 0.2]) + 2
WHERE = np.ones((6, 3), bool)


def feature_log(lanes=3) -> Counts:
    rng = np.random.default_rng(1)
    chance = Additive().chance(RELEVANCE, 3)
    shown = np.full((lanes, 6, 3, 3), 20)
    return Counts(shown, rng.binomial(shown, chance))


def lanes_of(counts, lanes, features=FEATURES):
    part = Counts(counts.impressions[lanes], counts.clicks[lanes])
    return count_loss(Split(features, WHERE, None, part))


QUICK = FitSettings(learning_rate=0.05, batch=2, steps=6, epochs=15, patience=3, min_delta=1e-4)


def fit_lanes(lanes, seed=0, features=FEATURES):
    objective = lanes_of(feature_log(), lanes, features)
    model = two_towers("linear", width=4, positions=3, seed=1)
    return fit(model, objective, objective, QUICK, lanes=len(lanes), seed=seed)


@pytest.fixture(scope="module")
def three_lanes():
    return fit_lanes([0, 1, 2])


def leaves(result, lane):
    return [np.asarray(leaf[lane]) for leaf in jax.tree.leaves(result.state)]


def test_a_lane_does_not_depend_on_its_neighbours(three_lanes):
    """Equal up to rounding, since sums of another shape may have another order."""
    alone, reversed_ = fit_lanes([1]), fit_lanes([2, 1, 0])
    assert len(set(three_lanes.loss)) == 3
    for other, lane in [(alone, 0), (reversed_, 1)]:
        assert other.epochs[lane] == three_lanes.epochs[1]
        np.testing.assert_allclose(other.loss[lane], three_lanes.loss[1], rtol=1e-5)
        for a, b in zip(leaves(other, lane), leaves(three_lanes, 1), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_same_seed_same_bytes_other_seed_other_batches(three_lanes):
    again, other = fit_lanes([0, 1, 2]), fit_lanes([0, 1, 2], seed=1)
    for lane in range(3):
        for a, b in zip(leaves(again, lane), leaves(three_lanes, lane), strict=True):
            assert a.tobytes() == b.tobytes()
    assert again.history.tobytes() == three_lanes.history.tobytes()
    assert not np.array_equal(other.history, three_lanes.history)


def test_loss_is_that_of_the_parameters_kept(three_lanes):
    objective = lanes_of(feature_log(), [0, 1, 2])
    for lane in range(3):
        value = objective.losses(three_lanes.model(lane), jnp.arange(6), lane).mean()
        np.testing.assert_allclose(value, three_lanes.loss[lane], rtol=1e-5)
        lowest = np.nanmin(three_lanes.history[:, lane])
        assert lowest <= three_lanes.loss[lane] <= lowest + QUICK.min_delta


# Evaluation.


@register_dataclass
@dataclass(frozen=True)
class Values:
    values: jax.Array

    @property
    def units(self):
        return len(self.values)

    def losses(self, model, index, lane, key=None):
        return self.values[index] + 100 * lane


@pytest.mark.parametrize("units", [1, 4, 5, 10, 12])
def test_mean_loss_counts_every_unit_once(monkeypatch, units):
    monkeypatch.setattr(lane_steps, "EVALUATION_BATCH", 4)
    values = np.random.default_rng(units).normal(size=units).astype(np.float32)
    graph, state = nnx.split(Falling())
    value = mean_loss(graph, state, 2, objective=Values(jnp.asarray(values)))
    np.testing.assert_allclose(value, values.mean() + 200, rtol=1e-5)


# The optimum.


def identified_log():
    """Sessions of ragged lists. All are shuffled, so that a parameter per pair is identified."""
    rng = np.random.default_rng(4)
    lengths = np.array([3, 2, 3])
    relevance = rng.uniform(1, 3, (3, 3))
    chance = Additive().chance(relevance, 3)
    order = np.tile(np.arange(3), (3, 1))
    sessions = simulate_sessions(order, chance, lengths, sessions=1500, temperature=1, rng=rng)
    return lengths, sessions


def test_training_reaches_the_exact_optimum():
    """Train on full batches to the optimum, without stopping and decay."""
    lengths, log = identified_log()
    where = mask(lengths, 3)
    pairs = np.arange(9).reshape(3, 3)
    counts = cells_of(log, 3)
    one = Counts(counts.impressions[None], counts.clicks[None])
    objective = count_loss(Split(pairs, where, None, one))
    settings = FitSettings(
        learning_rate=0.03, weight_decay=0.0, batch=3, steps=600, epochs=1, patience=1, min_delta=0
    )
    model = two_towers("embedding", width=9, positions=3, seed=1)
    model = fit(model, objective, objective, settings, lanes=1, seed=1).model(0)
    bias, relevance = np.asarray(model.position_bias), np.asarray(model.relevance(pairs))[where]
    # The same objective: cells weighted by one over the length of their list.
    weight = 1 / lengths[:, None, None]
    exact = fit_embedding((weight * counts.impressions)[where], (weight * counts.clicks)[where])
    np.testing.assert_allclose(bias - bias[0], exact.bias - exact.bias[0], atol=1e-3)
    np.testing.assert_allclose(relevance + bias[0], exact.relevance + exact.bias[0], atol=1e-3)
    # The tolerance is strict enough: without the weights the optimum differs.
    plain = fit_embedding(counts.impressions[where], counts.clicks[where])
    assert np.abs((plain.bias - plain.bias[0]) - (exact.bias - exact.bias[0])).max() > 5e-3

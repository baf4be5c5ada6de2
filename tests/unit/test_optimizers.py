"""Optimisers by name, against plain Optax, and lanes of their numbers."""

import inspect
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.tree_util import register_dataclass

from twotowers.errors import InputError
from twotowers.experiment.fields import read
from twotowers.experiment.training import Training
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.fitting.optimizers import DECAYS, decay_of

OPTIMIZERS = [*DECAYS, "lion", "nadamw", "rmsprop"]
CENTRES = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
STEEPNESS = np.array([0.3, 1.0, 4.0], np.float32)
SETTINGS = FitSettings(learning_rate=0.05, batch=4, steps=9, epochs=1, patience=1, min_delta=0.0)
DECAY = 0.2


class Point(nnx.Module):
    def __init__(self):
        self.x = nnx.Param(jnp.array([2.0, -1.0, 0.5]))


@register_dataclass
@dataclass(frozen=True)
class Quadratic:
    """Half of the squared distance to each unit's centre, steeper in some directions."""

    centres: jax.Array

    @property
    def units(self):
        return len(self.centres)

    def losses(self, model, index, lane, key=None):
        return 0.5 * (STEEPNESS * jnp.square(model.x[...] - self.centres[index])).sum(-1)


def descend(settings, lanes=1, **varied):
    quadratic = Quadratic(jnp.asarray(CENTRES))
    result = fit(Point(), quadratic, quadratic, settings, lanes=lanes, seed=0, varied=varied)
    return [np.asarray(result.model(lane).x[...]) for lane in range(lanes)]


def plainly(optimizer, steps=SETTINGS.steps):
    """Optax in a loop. Each batch has all units, so this is gradient descent."""
    x = Point().x[...]
    state = optimizer.init(x)
    for _ in range(steps):
        gradient = STEEPNESS * (x - CENTRES.mean(0))
        updates, state = optimizer.update(gradient, state, x)
        x = optax.apply_updates(x, updates)
    return np.asarray(x)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimiser_is_that_of_its_name(name):
    decay = {} if decay_of(name) is None else {"weight_decay": DECAY}
    settings = FitSettings(**{**SETTINGS.__dict__, "optimizer": name, "weight_decay": None} | decay)
    expected = plainly(getattr(optax, name)(0.05, **decay))
    np.testing.assert_allclose(descend(settings)[0], expected, rtol=1e-4, atol=1e-5)
    # The check is strict enough: one step less gives another point.
    assert (
        np.abs(plainly(getattr(optax, name)(0.05, **decay), SETTINGS.steps - 1) - expected).max()
        > 1e-4
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_decay_is_that_of_optax(name):
    parameters = inspect.signature(getattr(optax, name)).parameters
    assert ("weight_decay" in parameters) == (decay_of(name) is not None)
    if decay_of(name) is not None:
        assert parameters["weight_decay"].default == decay_of(name)


def test_a_function_and_a_schedule_are_those_of_optax():
    slow = optax.linear_schedule(0.05, 0.01, 6)
    clipped = lambda rate: optax.chain(optax.clip(0.5), optax.sgd(rate))  # noqa: E731
    scheduled = replace(
        SETTINGS,
        optimizer=clipped,
        weight_decay=0.0,
        schedule=(("kind", "linear_schedule"), ("end_value", 0.2), ("transition_steps", 6)),
    )
    np.testing.assert_allclose(descend(scheduled)[0], plainly(clipped(slow)), rtol=1e-4)
    assert np.abs(plainly(clipped(0.05)) - plainly(clipped(slow))).max() > 1e-2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"optimizer": "adamv"}, "optimizer.*'adamv'.*did you mean 'adam"),
        ({"optimizer": "linear_schedule"}, "no optimiser 'linear_schedule'"),
        ({"optimizer": optax.adam(1e-3)}, "such as optax.adam, not optax.adam"),
        ({"schedule": {"kind": "cosine"}}, "schedule.kind.*'cosine_decay_schedule'"),
        ({"schedule": {"kind": "cosine_decay_schedule"}}, "decay_steps"),
        ({"optimizer": "rmsprop", "weight_decay": 0.1}, "'rmsprop' has no weight decay"),
    ],
)
def test_what_optax_has_not_is_refused(given, said):
    training = {"learning_rate": 0.1, "batch": 1, "epochs": 1, "patience": 1, "min_delta": 0.0}
    with pytest.raises(InputError, match=said):
        read(Training, training | given)


def test_lanes_of_learning_rates_and_decays_equal_separate_fits():
    rates, decays = [0.01, 0.03, 0.1, 0.01, 0.2], [0.0, 0.5, 0.1, 1.0, 0.0]
    lanes = descend(SETTINGS, 5, learning_rate=rates, weight_decay=decays)
    for found, rate, decay in zip(lanes, rates, decays, strict=True):
        alone = descend(replace(SETTINGS, learning_rate=rate, weight_decay=decay))[0]
        np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-6)
    assert len({lane.tobytes() for lane in lanes}) == 5


def test_of_several_learning_rates_some_may_diverge():
    steep = replace(SETTINGS, optimizer="sgd", weight_decay=0.0, steps=400)
    quadratic = Quadratic(jnp.asarray(CENTRES))
    rates = {"learning_rate": [0.1, 9.0]}
    found = fit(Point(), quadratic, quadratic, steep, lanes=2, seed=0, varied=rates)
    assert np.isfinite(found.loss).tolist() == [True, False]
    np.testing.assert_array_equal(found.model(1).x[...], Point().x[...])
    with pytest.raises(InputError, match=r"lanes \[0, 1\] did not reach a finite"):
        descend(steep, 2, learning_rate=[8.0, 9.0])
    with pytest.raises(InputError, match=r"lanes \[0, 1\] did not reach a finite"):
        descend(replace(steep, learning_rate=9.0), 2)

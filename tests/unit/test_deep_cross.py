"""The deep and cross tower, and towers of features as parts of page models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from twotowers.models.dynamic_bayesian import DynamicBayesian
from twotowers.models.protocol import PER_DOCUMENT
from twotowers.towers.deep import DeepTower
from twotowers.towers.deep_cross import DeepCrossTower
from twotowers.towers.linear import LinearTower
from twotowers.towers.page_towers import PageTowers, Reading

RNG = np.random.default_rng(0)
PAGES, LENGTH, WIDTH = 40, 4, 3
FEATURES = RNG.normal(size=(PAGES, LENGTH, WIDTH)).astype(np.float32)
CLICKS = RNG.random((PAGES, LENGTH)) < 0.4
WHERE = np.arange(LENGTH) < RNG.integers(2, LENGTH + 1, PAGES)[:, None]
PLACES = np.broadcast_to(np.arange(LENGTH), (PAGES, LENGTH)).astype(np.uint8)


def normalised(x, norm):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return x * np.asarray(norm.scale[...]) + np.asarray(norm.bias[...])


def affine(x, layer):
    return x @ np.asarray(layer.kernel[...], float) + np.asarray(layer.bias[...], float)


def plain(tower, x):
    """The network's formula in float64, row by row of features."""
    first = crossed = normalised(x.astype(float), tower.input_norm)
    for layer in tower.crosses:
        crossed = first * affine(crossed, layer) + crossed
    for layer, norm in zip(tower.layers, tower.norms, strict=True):
        crossed = normalised(affine(crossed, layer), norm)
        crossed = np.where(crossed > 0, crossed, np.expm1(np.minimum(crossed, 0)))
    return affine(crossed, tower.last)[..., 0]


def shaken(tower, seed=1):
    """The tower with other scales and shifts than those of a fresh one, which are 1 and 0."""
    keys = iter(jax.random.split(jax.random.key(seed), 100))
    state = jax.tree.map(
        lambda leaf: leaf + 0.3 * jax.random.normal(next(keys), leaf.shape),
        nnx.state(tower, nnx.Param),
    )
    nnx.update(tower, state)
    return tower


def test_the_tower_is_its_formula():
    tower = shaken(DeepCrossTower(WIDTH, hidden=7, rngs=nnx.Rngs(1)))
    assert (len(tower.crosses), len(tower.layers)) == (2, 2)
    expected = plain(tower, FEATURES)
    np.testing.assert_allclose(tower(FEATURES), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(tower(FEATURES, jax.random.key(0)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("build", [LinearTower, DeepTower, DeepCrossTower])
def test_each_part_of_documents_has_a_tower_of_its_own(build):
    """The losses are those of the chain's recursion, by hand, from the towers' own logits."""
    tower, kinds = Reading(build, ("features",)), DynamicBayesian.parts.items()
    parts = {part: tower if kind == PER_DOCUMENT else None for part, kind in kinds}
    model = PageTowers(DynamicBayesian(), parts, {"features": WIDTH}, LENGTH, rngs=nnx.Rngs(3))
    attraction, satisfaction = (
        1 / (1 + np.exp(-np.asarray(model.towers[part](jnp.asarray(FEATURES)), float)))
        for part in ("attraction", "satisfaction")
    )
    assert np.abs(attraction - satisfaction).max() > 1e-3
    examined, expected = np.ones(PAGES), np.zeros((PAGES, LENGTH))
    for k in range(LENGTH):
        g, clicked = attraction[:, k], CLICKS[:, k]
        chance = examined * g
        expected[:, k] = -np.log(np.where(clicked, chance, 1 - chance)) * WHERE[:, k]
        behind_none = 0.5 * examined * (1 - g) / (1 - chance)
        examined = np.where(clicked, 0.5 * (1 - satisfaction[:, k]), behind_none)
    found = model.row_losses(FEATURES, PLACES.astype(int), None, WHERE, CLICKS)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    ranked = np.log(attraction) + np.log(satisfaction)
    np.testing.assert_allclose(model.scores(FEATURES), ranked, rtol=1e-3, atol=1e-3)

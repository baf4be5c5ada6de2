"""Relevance and bias towers in closed form; towers with parameters of pairs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.stats import ks_2samp, kstest

from twotowers.towers.baseline import BaselineTower
from twotowers.towers.deep import DeepTower
from twotowers.towers.hashed import HashedTower, scrambled
from twotowers.towers.lane import Lane
from twotowers.towers.parts import CUT_DEVIATION, embedding, linear, matmul
from twotowers.towers.quotient_remainder import QuotientRemainderTower
from twotowers.towers.two_towers import two_towers

FEATURES = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def test_matmul_has_the_gradients_of_a_product_in_every_lane():
    rng = np.random.default_rng(1)
    rows, weights, up = (rng.normal(size=(3, *n)) for n in ((7, 4), (4, 5), (7, 5)))

    def loss(multiply, rows, weights, up):
        return (multiply(rows, weights) * up).sum()

    gradients = jax.vmap(jax.grad(partial(loss, matmul), argnums=(0, 1)))(rows, weights, up)
    for found, expected in zip(gradients, (up @ weights.mT, rows.mT @ up), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_dropout_only_with_a_key():
    plain = DeepTower(4, rngs=nnx.Rngs(1))
    dropping = DeepTower(4, dropout=0.5, rngs=nnx.Rngs(1))
    np.testing.assert_array_equal(dropping(FEATURES), plain(FEATURES))
    key = jax.random.key(0)
    np.testing.assert_array_equal(plain(FEATURES, key), plain(FEATURES))
    assert not np.allclose(dropping(FEATURES, key), plain(FEATURES))


def test_embedding_looks_pairs_up():
    model = two_towers("embedding", width=6, positions=2, seed=3)
    table = np.asarray(model.relevance.logits.embedding[...])[:, 0]
    np.testing.assert_array_equal(model.relevance(np.array([[5, 0]])), [[table[5], table[0]]])


def test_starts_have_the_distribution_of_flax_and_differ_by_key():
    weights = linear(400, 500, rngs=nnx.Rngs(0)).kernel[...].ravel()
    theirs = nnx.Linear(400, 500, rngs=nnx.Rngs(0)).kernel[...].ravel()
    # Two samples of 200,000: the largest distance of their distributions has p = .001 at .0062.
    assert ks_2samp(weights, theirs).statistic < 0.0062
    assert np.abs(weights).max() <= 2 / (CUT_DEVIATION * 20) * (1 + 1e-6)
    table = embedding(200_000, rngs=nnx.Rngs(0)).embedding[...][:, 0]
    assert kstest(table, "norm").statistic < 0.0044
    twice = [linear(3, 2, rngs=nnx.Rngs(seed)).kernel[...] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(twice[0], twice[1])
    assert not np.allclose(twice[0], twice[2])


# A shared baseline, and tables smaller than the pairs.

PAIRS = 10_000


def numbers(tower):
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(tower, nnx.Param)))


@pytest.mark.parametrize("kind", [BaselineTower, HashedTower, QuotientRemainderTower])
def test_pairs_start_near_the_baseline(kind):
    tower = kind(PAIRS, rngs=nnx.Rngs(0))
    logits = np.asarray(tower(jnp.arange(PAIRS).reshape(10, -1)))
    assert logits.shape == (10, PAIRS // 10)
    assert 0 < np.abs(logits - 1).max() < 0.05
    assert np.std(logits) == pytest.approx(np.sqrt(1e-5), rel=0.2)


@pytest.mark.parametrize("ratio", [1, 2, 10, 1000])
def test_tables_are_as_much_smaller_as_was_asked_for(ratio):
    hashed = HashedTower(PAIRS, ratio=ratio, rngs=nnx.Rngs(0))
    assert numbers(hashed) == PAIRS // ratio + 1
    both = QuotientRemainderTower(PAIRS, ratio=ratio, rngs=nnx.Rngs(0))
    assert numbers(both) == PAIRS // ratio + ratio + 1


def test_hashing_spreads_pairs_evenly_and_signs_are_fair():
    mixed = np.asarray(scrambled(jnp.arange(100_000)))
    assert len(np.unique(mixed)) == 100_000
    tower = HashedTower(100_000, ratio=100, rngs=nnx.Rngs(0))
    places = np.bincount(mixed % 1000, minlength=1000)
    # A Poisson law of mean 100.
    assert places.var() == pytest.approx(100, rel=0.2)
    tower.differences.values[...] = jnp.ones(1000)
    signs = np.asarray(tower(jnp.arange(100_000)) - tower.baseline[...])
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.mean()) < 0.02


def test_pairs_that_share_a_remainder_differ_by_their_quotient():
    tower = QuotientRemainderTower(20, ratio=4, rngs=nnx.Rngs(0))
    tower.baseline[...] = jnp.float32(0)
    tower.quotient[...] = jnp.array([1.0, 2.0, 3.0, 4.0])
    logits = np.asarray(tower(jnp.arange(20))).reshape(4, 5)
    np.testing.assert_allclose(logits, np.outer([1, 2, 3, 4], logits[0]), rtol=1e-6)


@pytest.mark.parametrize("kind", [HashedTower, QuotientRemainderTower])
def test_a_lane_uses_the_table_of_its_own_ratio(kind):
    """As a tower of that ratio alone, given the same rows."""
    ratios = (2.0, 7.0, 1000.0)
    together = kind(PAIRS, ratio=Lane("tower_ratio", ratios), rngs=nnx.Rngs(0))
    for ratio in ratios:
        alone = kind(PAIRS, ratio=ratio, rngs=nnx.Rngs(0))
        name = "differences" if kind is HashedTower else "remainder"
        large, small = (getattr(tower, name) for tower in (together, alone))
        large.ratio[...] = jnp.float32(ratio)
        small.values[...] = large.values[...][: small.values[...].size]
        for name, leaf in vars(alone).items():
            if isinstance(leaf, nnx.Param):
                mine = getattr(together, name)[...]
                leaf[...] = mine[: leaf[...].size] if leaf[...].ndim else mine
        np.testing.assert_array_equal(together(jnp.arange(PAIRS)), alone(jnp.arange(PAIRS)))

"""Towers with parameters of pairs: a shared baseline, and tables smaller than the pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from twotowers.towers.baseline import BaselineTower
from twotowers.towers.hashed import HashedTower, scrambled
from twotowers.towers.lane import Lane
from twotowers.towers.quotient_remainder import QuotientRemainderTower

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

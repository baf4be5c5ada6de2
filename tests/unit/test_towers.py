"""Relevance and bias towers in closed form."""

from functools import partial

import jax
import numpy as np
from flax import nnx
from scipy.stats import ks_2samp, kstest

from twotowers.towers.deep import DeepTower
from twotowers.towers.parts import CUT_DEVIATION, embedding, linear, matmul
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
    model = two_towers("embedding", width=0, pairs=6, positions=2, seed=3)
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

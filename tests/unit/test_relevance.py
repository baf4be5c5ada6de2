"""Synthetic relevance (Eqs. 23, 24) and its scaling to [0, 4]."""

import numpy as np
import pytest

from twotowers.models.relevance import HIDDEN, deep, linear, padding_of, relevance, rescale

ROWS, WIDTH = 2011, 7
FEATURES = np.random.default_rng(5).normal(size=(ROWS, WIDTH))
LABELS = np.arange(ROWS) % 5


def make(name, seed=1, split="train", features=FEATURES):
    return relevance(name, np.zeros(len(features)), features, seed=seed, split=split)


def pearson(a, b) -> float:
    return np.corrcoef(a, b)[0, 1]


def test_annotated_is_the_labels():
    values = relevance("annotated", LABELS, FEATURES, seed=1, split="train")
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, LABELS)


@pytest.mark.parametrize("name", ["linear", "deep"])
def test_range_and_shares_clipped(name):
    values = make(name)
    assert values.dtype == np.float32
    assert values.min() == 0
    assert values.max() == 4
    # The percentile lies at rank .05 (n - 1), between two values. Lower values are clipped.
    clipped = int(0.05 * (ROWS - 1)) + 1
    assert (values == 0).sum() == clipped
    assert (values == 4).sum() == clipped


def test_rescale_is_the_affine_map_of_the_percentiles():
    scores = np.arange(101.0)  # 5th percentile 5, 95th percentile 95
    expected = 4 * (np.clip(scores, 5, 95) - 5) / 90
    np.testing.assert_allclose(rescale(scores), expected, rtol=1e-6)
    np.testing.assert_allclose(rescale(3 * scores - 7), expected, rtol=1e-6)


def test_equations_before_the_noise():
    rng = np.random.default_rng(1)
    np.testing.assert_allclose(
        linear(FEATURES, np.random.default_rng(1)), FEATURES @ rng.standard_normal(WIDTH)
    )
    # tanh saturates at +-1: far away, Eq. 24 is b2 + sum of +-w2, whatever the feature's size.
    far = deep(np.array([[1e9], [1e12], [-1e9], [-1e12]]), np.random.default_rng(2))
    assert far[0] == far[1]
    assert far[2] == far[3]
    assert far[0] != far[2]
    # ... and the half difference of the two ends is a sum of 16 terms +-w2 of standard normals.
    many = [deep(np.array([[1e9], [-1e9]]), np.random.default_rng(seed)) for seed in range(2000)]
    half = np.array([(a - b) / 2 for a, b in many])
    # Its variance is 16; the sample variance of n normals has standard error sqrt(2 / n).
    assert abs(half.var() / HIDDEN - 1) < 5 * np.sqrt(2 / len(half))


@pytest.mark.parametrize("name", ["linear", "deep"])
def test_splits_share_weights_but_not_noise(name):
    train, test = make(name, split="train"), make(name, split="test")
    assert not np.array_equal(train, test)
    # Same weights: both are the same signal plus small noise. Other weights: another signal.
    assert pearson(train, test) > 0.95
    assert pearson(train, make(name, seed=2)) < 0.95
    np.testing.assert_array_equal(train, make(name))


def test_padding_counts_in_the_percentiles_only():
    far = FEATURES + 50  # so that a document of zero features lies outside of all others
    masked, few, many = (
        relevance("linear", np.zeros(ROWS), far, seed=1, split="train", padding=padding)
        for padding in (0, 40, 200)
    )
    assert len(few) == len(many) == ROWS
    np.testing.assert_array_equal(masked, make("linear", features=far))
    # Zeros below, or above, of all documents: with 5 % of them none is clipped on that side.
    clipped = [np.sum((values == 0) | (values == 4)) for values in (masked, few, many)]
    assert clipped[0] > clipped[1] > clipped[2]
    # An order is kept: percentiles move, documents do not.
    inside = (masked > 0) & (masked < 4)
    assert pearson(masked[inside], many[inside]) > 0.999


def test_padding_of_lists():
    assert padding_of(np.array([25, 1, 30]), 25) == 24
    assert padding_of(np.array([25, 1, 30]), None) == 0

"""Context types of places, against loops; and the users of Chen et al. (2024), Appendix C.2."""

from functools import partial

import numpy as np
import pytest

from papers.chen2024.models.contextual import Contextual
from papers.chen2024.models.eye_tracking import EXAMINATION, POSITIONS, WEIGHTS
from twotowers.experiment.ranked_lists import (
    assign_contexts,
    bias_features,
    context_vectors,
    vector_ids,
)

assign_contexts = partial(assign_contexts, positions=POSITIONS)
context_vectors = partial(context_vectors, width=10, deviation=0.35)


def test_rows_name_context_and_position():
    places = assign_contexts(np.array([10, 3, 7]), 50, seed=0)
    assert (places.shown % POSITIONS).tolist() == [*range(10), *range(3), *range(7)]
    assert (places.empty % POSITIONS).tolist() == [*range(3, 10), *range(7, 10)]
    assert places.shown.min() >= 0
    assert places.shown.max() < 50 * POSITIONS
    # Padding is one more vector. Among the others two documents have the same.
    vectors = np.array([*range(10), 0, *range(10, 19)])
    feature, factor = places.padded(vectors)
    assert feature.tolist() == [*vectors, *[19] * 10]
    assert factor.tolist() == [*places.shown, *places.empty]


def test_a_place_has_its_context_however_long_the_list_is():
    short, long = (assign_contexts(np.array([n, 10]), 5000, seed=3).shown for n in (4, 10))
    assert short[:4].tolist() == long[:4].tolist()
    assert short[4:].tolist() == long[10:].tolist()


def test_contexts_are_uniform():
    counts = np.bincount(assign_contexts(np.full(4000, 10), 8, seed=0).shown, minlength=80)
    # Binomial, 4000 draws of chance 1/8: five standard deviations.
    assert np.abs(counts - 500).max() < 5 * np.sqrt(4000 / 8 * 7 / 8)


def test_identical_vectors_share_an_id():
    features = np.array([[1, 2], [0, 3], [1, 2], [1, 3], [-0.0, 3]], np.float32)
    ids = vector_ids(features)
    equal = (features[:, None] == features).all(-1)
    np.testing.assert_array_equal(ids[:, None] == ids, equal)
    assert sorted(set(ids)) == [0, 1, 2]


def test_examination_follows_the_formula():
    vectors = context_vectors(30, seed=4)
    # The third context's exponent is cut at 0: everything is examined.
    vectors[2] = -10 * np.sign(WEIGHTS)
    chance = Contextual().examined_in(vectors, POSITIONS).ravel()
    for context in range(30):
        exponent = max(sum(WEIGHTS * vectors[context]) + 1, 0)
        for position in range(10):
            expected = EXAMINATION[position] ** exponent
            assert chance[context * 10 + position] == pytest.approx(expected)
    assert (chance[20:30] == 1).all()
    np.testing.assert_allclose(Contextual().examined_in(np.zeros((1, 10)), 10)[0], EXAMINATION)


def test_bias_features_are_the_context_and_ten_times_the_position():
    vectors = context_vectors(3, seed=0)
    table = bias_features(vectors, positions=POSITIONS, weight=10)
    assert table.shape == (30, 11)
    for factor, row in enumerate(table):
        np.testing.assert_array_equal(row[:10], vectors[factor // 10])
        assert row[10] == 10 * (factor % 10)


def test_relevance_by_label():
    found = Contextual().attractive(np.array([4.0, 0, 2, 3, 1]))
    np.testing.assert_allclose(found, [1, 0.1, 0.28, 0.52, 0.16])

"""Boosted trees, against the means that they converge to."""

import numpy as np
import pytest

from twotowers.rankers.trees import fit_trees

STEPS = np.repeat([0.0, 1.0, 2.0, 3.0], 500)[:, None]
TARGET = np.repeat([0.1, 0.7, 0.2, 1.0], 500)


def test_converges_to_the_target_of_each_vector():
    predict = fit_trees(STEPS, TARGET, trees=200, leaves=4)
    # A boosting round removes a tenth of what is left.
    np.testing.assert_allclose(predict(STEPS), TARGET, atol=2 * 0.9**200)


def test_one_round_removes_a_tenth_of_the_residual():
    mean = TARGET.mean()
    predict = fit_trees(STEPS, TARGET, trees=1, leaves=4)
    np.testing.assert_allclose(predict(STEPS), mean + 0.1 * (TARGET - mean), rtol=1e-6)


@pytest.mark.parametrize(("rows", "split"), [(99, False), (100, True)])
def test_a_leaf_has_a_hundred_rows(rows, split):
    features = np.repeat([0.0, 1.0], [rows, 1000])[:, None]
    predict = fit_trees(features, features[:, 0], trees=1, leaves=255)
    low, high = predict(np.array([[0.0], [1.0]]))
    assert (low < high) == split


def test_leaves_bound_what_a_tree_can_tell_apart():
    predict = fit_trees(STEPS, TARGET, trees=1, leaves=3)
    assert len(np.unique(predict(STEPS))) == 3


def test_the_same_whatever_the_number_of_threads():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 5)).astype(np.float32)
    target = features[:, 0] * features[:, 1] + rng.normal(size=3000)
    one, two, again = (
        fit_trees(features, target, trees=20, leaves=31, threads=threads)(features)
        for threads in (1, 2, 1)
    )
    np.testing.assert_array_equal(one, again)
    np.testing.assert_allclose(one, two, rtol=1e-9)

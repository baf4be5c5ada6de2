"""Boosted trees: means that they converge to; LambdaMART against LightGBM's own ranker."""

import lightgbm
import numpy as np
import pytest

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings
from twotowers.rankers.training import train_ranker
from twotowers.rankers.trees import fit_lambdamart, fit_trees, some_queries

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


def test_the_same_again():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 5)).astype(np.float32)
    target = features[:, 0] * features[:, 1] + rng.normal(size=3000)
    one, again = (fit_trees(features, target, trees=20, leaves=31)(features) for _ in range(2))
    np.testing.assert_array_equal(one, again)


@pytest.fixture
def graded() -> Rankings:
    rng = np.random.default_rng(3)
    lengths = rng.integers(5, 40, 60)
    query = np.repeat(np.arange(60), lengths)
    features = rng.normal(size=(len(query), 6)).astype(np.float32)
    noisy = features[:, 0] + 0.5 * rng.normal(size=len(query))
    label = np.clip(np.round(noisy + 1), 0, 4).astype(np.float32)
    return Rankings(query, np.arange(len(query), dtype=np.int32), label, features)


def test_lambdamart_is_that_of_lightgbms_own_interface(graded):
    options = {"n_estimators": 30, "num_leaves": 15, "learning_rate": 0.1}
    own = lightgbm.LGBMRanker(**options, n_jobs=1, verbose=-1).fit(
        graded.features, graded.label, group=graded.lengths
    )
    predict = fit_lambdamart(graded, graded.label, trees=30, leaves=15, learning_rate=0.1)
    # The order of columns differs, so sums differ in their last digits.
    np.testing.assert_allclose(
        predict(graded.features), own.predict(graded.features), rtol=1e-6, atol=1e-9
    )


def test_lambdamart_needs_grades(graded):
    with pytest.raises(InputError, match=r"1.5 is no grade"):
        fit_lambdamart(graded, np.full(len(graded.label), 1.5))


def test_some_queries_are_so_many_of_them_whole_each_as_likely(graded):
    drawn = [graded.take(some_queries(graded, 20, seed=seed)) for seed in range(400)]
    assert all(len(some.queries) == 20 for some in drawn)
    assert set(drawn[0].lengths) <= set(graded.lengths)
    counts = np.bincount(np.concatenate([some.queries for some in drawn]), minlength=60)
    # Binomial, 400 draws of chance 1/3: five standard deviations.
    assert np.abs(counts - 400 / 3).max() < 5 * np.sqrt(400 / 3 * 2 / 3)
    assert some_queries(graded, 61, seed=1).all()


def test_the_policys_ranker_is_lambdamart_on_those_queries(graded):
    settings = {"queries": 20, "trees": 10}
    score = train_ranker("lambdamart", graded, graded.label, settings, seed=4)
    some = some_queries(graded, 20, seed=4)
    predict = fit_lambdamart(graded.take(some), graded.label[some], trees=10)
    np.testing.assert_array_equal(score(graded, None), predict(graded.features))
    named = train_ranker("other", graded, graded.label, {**settings, "kind": "lambdamart"}, seed=4)
    np.testing.assert_array_equal(named(graded, None), score(graded, None))

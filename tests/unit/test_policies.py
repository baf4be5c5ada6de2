"""Logging policies: strength (Eq. 25), order, and the rankers behind them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training import short
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings
from twotowers.logs.policies import exposure, policy_scores, ranking_order, ranks, read_scores
from twotowers.rankers.training import train_ranker

SCORES = np.random.default_rng(3).uniform(0, 4, 4000)
QUICK = short(0.03, batch=16, epochs=60, steps=20, patience=5, min_delta=1e-6)


def scores(strength, seed=0):
    return policy_scores(SCORES, strength, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("strength", [-0.666, -0.25, 0, 0.333, 0.5])
def test_equation_25(strength):
    noise = np.random.default_rng(0).uniform(0, 4, len(SCORES))
    expected = strength * SCORES + (1 - abs(strength)) * noise
    np.testing.assert_allclose(scores(strength), expected, rtol=1e-12)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(0, 3), st.randoms())
def test_ranking_order_breaks_ties_and_puts_padding_last(labels, spare, random):
    n, length = len(labels), len(labels) + spare
    padded = np.array([labels + [9] * spare], float)
    where = np.arange(length)[None] < n
    tiebreak = random.sample(range(length), length)
    order = ranking_order(padded, where, tiebreak=np.array([tiebreak]))[0]
    assert sorted(order) == list(range(length))
    assert order[:n].tolist() == sorted(range(n), key=lambda each: (-labels[each], tiebreak[each]))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 10**6))
def test_ranks_invert_the_order(lengths, seed):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.random.default_rng(seed).permutation(offsets[-1]).astype(float)
    result = ranks(values, offsets)
    for start, end in pairwise(offsets):
        expected = [1 + (values[start:end] > values[row]).sum() for row in range(start, end)]
        assert result[start:end].tolist() == expected


def linear_world(queries=64, width=3):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, queries)
    features = rng.normal(size=(lengths.sum(), width)).astype(np.float32)
    labels = (features @ np.array([1.0, -0.5, 0.25]) + 2).astype(np.float32)
    query = np.repeat(np.arange(queries), lengths)
    document = np.concatenate([np.arange(n) for n in lengths])
    return Rankings(query, document, labels, features), labels


@pytest.mark.parametrize("temperature", [0.0, 0.25, 1.0])
def test_exposure_is_that_of_the_ranker_and_of_shuffled_lists(temperature):
    lists, rng = linear_world(9)[0], np.random.default_rng(0)
    scores = rng.permutation(len(lists.query))
    found = exposure(lists, scores, temperature, 9, rng=rng)
    for start, end in pairwise(lists.offsets):
        expected = np.zeros((end - start, 9))
        expected[:, : end - start] = temperature / (end - start)
        expected[np.argsort(-scores[start:end]), np.arange(end - start)] += 1 - temperature
        np.testing.assert_allclose(found[start:end], expected)


def test_linear_ranker_learns_a_linear_function_with_intercept():
    """It is the same again, and under another name."""
    rankings, labels = linear_world()
    found, again = (
        train_ranker(name, rankings, labels, QUICK | kind, seed=1)(rankings, None)
        for name, kind in (("linear", {}), ("other", {"kind": "linear"}))
    )
    assert found.shape == labels.shape
    np.testing.assert_allclose(found, labels, atol=0.02)
    np.testing.assert_array_equal(again, found)


def test_deep_ranker_learns_and_scores_without_dropout():
    rankings, labels = linear_world()
    score = train_ranker("deep", rankings, labels, QUICK, seed=1)
    first = score(rankings, None)
    np.testing.assert_array_equal(first, score(rankings, None))
    assert np.mean((first - labels) ** 2) < 0.2 * labels.var()
    # Each row is scored by itself, without padding and other documents.
    np.testing.assert_allclose(score(rankings.take(np.arange(5)), None), first[:5], rtol=1e-4)


def test_features_that_are_not_finite_are_an_error():
    rankings, labels = linear_world()
    rankings.features[3, 0] = np.nan
    with pytest.raises(InputError, match="finite"):
        train_ranker("linear", rankings, labels, QUICK, seed=1)


def test_read_policy(tmp_path):
    path = tmp_path / "policy.parquet"
    columns = {
        "split": ["train", "train", "train", "test"],
        "query": [7, 7, 3, 7],
        "document": pa.array([0, 1, 0, 4], pa.int32()),
        "relevance": pa.array([4.0, 0.0, 1.0, 2.0], pa.float32()),
        "score": pa.array([0.5, 0.25, 0.0, 1.0], pa.float32()),
    }
    pq.write_table(pa.table(columns), path)
    policy = read_scores(path, "train")
    assert policy.pairs.query.tolist() == [7, 7, 3]
    assert policy.pairs.offsets.tolist() == [0, 2, 3]
    assert policy.pairs.lengths.tolist() == [2, 1]
    assert policy.relevance.tolist() == [4, 0, 1]
    assert policy.score.tolist() == [0.5, 0.25, 0]

"""Metrics of queries and pages, and paired tests, against plain formulas and SciPy."""

import numpy as np
import pytest

from twotowers.claims.metrics import joined_by_number, logged_ndcg, nll_of_pages, of_each_query
from twotowers.methods.chance import NO_CLICK

QUERIES, DOCUMENTS = 7, 14
RNG = np.random.default_rng(3)
SCORES = RNG.normal(size=(QUERIES, DOCUMENTS))
LABELS = RNG.integers(0, 5, (QUERIES, DOCUMENTS))
WHERE = np.arange(DOCUMENTS) < RNG.integers(2, DOCUMENTS + 1, QUERIES)[:, None]
LABELS[0] = 0


def plain_dcg(labels, topn):
    return sum((2.0**y - 1) / np.log2(1 + rank) for rank, y in enumerate(labels[:topn], start=1))


def test_metrics_of_each_query():
    found = of_each_query(SCORES, LABELS, where=WHERE)
    for query, shown in enumerate(WHERE):
        order = np.argsort(-SCORES[query][shown], kind="stable")
        ranked = LABELS[query][shown][order]
        for topn in (1, 3, 5, 10):
            expected = plain_dcg(ranked, topn)
            np.testing.assert_allclose(found[f"dcg@{topn}"][query], expected, rtol=1e-5)
        ideal = plain_dcg(sorted(ranked, reverse=True), 10)
        np.testing.assert_allclose(
            found["ndcg@10"][query], plain_dcg(ranked, 10) / ideal if ideal else 0, rtol=1e-5
        )
        relevant = np.flatnonzero(ranked[:10] >= 1)
        expected = 1 / (1 + relevant[0]) if len(relevant) else 0
        np.testing.assert_allclose(found["mrr@10"][query], expected, rtol=1e-6)


def test_logged_order():
    positions = 10
    where = np.ones((2000, positions), bool)
    inverse = 1 / np.arange(1, positions + 1)
    assert (logged_ndcg(np.tile(inverse, (2000, 1)), where=where) == 1).all()
    # A random order: the mean gain at every rank.
    gains, discounts = 2**inverse - 1, 1 / np.log2(2 + np.arange(positions))
    expected = gains.mean() * discounts.sum() / (gains @ discounts)
    found = logged_ndcg(RNG.random(where.shape), where=where).mean()
    assert found == pytest.approx(expected, abs=0.01)
    assert 0.65 < expected < 0.75


def test_a_gap_keeps_its_position():
    """The page shows positions 1 and 3. Labels are 1 and 1/3, and the best order has nDCG 1."""
    where = np.array([[True, False, True]])
    assert logged_ndcg(np.array([[1.0, 9.0, 0.0]]), where=where) == 1
    gains = [1, 2 ** (1 / 3) - 1]
    swapped = (gains[1] + gains[0] / np.log2(3)) / (gains[0] + gains[1] / np.log2(3))
    found = logged_ndcg(np.array([[0.0, 9.0, 1.0]]), where=where)
    np.testing.assert_allclose(found, swapped, rtol=1e-6)


def test_accidental_join():
    """The published tables have the mean of what matches; its tests fill the rest with 0."""
    nll = nll_of_pages(
        np.array([[0.2, 0.4], [1.0, 5.0], [3.0, 1.0]]), np.array([[1, 1], [1, 0], [0, 0]], bool)
    )
    np.testing.assert_array_equal(nll, [0.30000000000000004, 1.0, np.nan])
    rows = joined_by_number(nll[:2], np.array([5, 3]), np.array([3, 4, 5, 6]))
    np.testing.assert_array_equal(rows, [1.0, np.nan, nll[0], np.nan])
    # An id of two pages gives two rows.
    twice = joined_by_number(np.array([0.1, 0.2, 0.3]), np.array([5, 5, 8]), np.array([5, 8]))
    np.testing.assert_array_equal(twice, [0.1, 0.2, 0.3])


def test_chance_is_the_mean_over_draws():
    rng = np.random.default_rng(0)
    scores = rng.random((40_000, 3))
    labels, where = np.broadcast_to([2, 0, 1], scores.shape), np.ones(scores.shape, bool)
    drawn = of_each_query(scores, labels, where=where)
    for name, value in of_each_query(0 * scores[:1], labels[:1], where=where[:1]).items():
        assert value.item() == pytest.approx(drawn[name].mean(), rel=0.02)
    assert pytest.approx(np.logaddexp(0, scores).mean(), abs=1e-3) == NO_CLICK
    assert pytest.approx(np.logaddexp(0, -scores).mean(), abs=1e-3) == NO_CLICK - 0.5

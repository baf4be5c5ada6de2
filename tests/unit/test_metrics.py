"""nDCG and MRR against closed forms and Rax; ARP."""

from itertools import permutations

import numpy as np
import pytest
import rax

from twotowers.claims.metrics import arp, correlation, dcg, mrr, ndcg, shown_arp
from twotowers.logs.counts import Counts

log2 = np.log2


def one(metric, scores, labels, where=None, **options) -> float:
    where = np.ones(len(scores), bool) if where is None else np.asarray(where, bool)
    labels = np.array([labels], np.float32)
    return metric(np.array([scores], np.float32), labels, where=where[None], **options).item()


def test_no_relevant_document_counts_zero_not_one():
    assert one(ndcg, [1.0, 2.0], [0, 0]) == 0
    assert one(mrr, [1.0, 2.0], [0, 0.99]) == 0


@pytest.mark.parametrize("rank", [1, 2, 10, 11])
def test_ranks_in_closed_form(rank):
    scores = -np.arange(12.0)
    labels = np.where(np.arange(12) >= rank - 1, 1, 0)
    assert one(mrr, scores, labels) == pytest.approx(1 / rank if rank <= 10 else 0, rel=1e-6)
    assert one(mrr, scores, labels, topn=12) == pytest.approx(1 / rank, rel=1e-6)
    alone = np.arange(12) == rank - 1
    expected = 1 / log2(1 + rank) if rank <= 10 else 0
    assert one(ndcg, scores, alone) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("topn", [1, 5, 50])
def test_rax_finds_the_same(topn):
    rng = np.random.default_rng(1)
    where = rng.random((50, 12)) < 0.7
    # No ties, since Rax ranks these in their order; infinite scores; labels that are not whole.
    scores = rng.permuted(np.tile(np.append(np.arange(10.0), [np.inf, -1e30]), (50, 1)), axis=1)
    labels = rng.choice([0.0, 0.5, 1.0, 4.0], where.shape).astype(np.float32)
    for ours, name in [(ndcg, "ndcg"), (dcg, "dcg"), (mrr, "mrr")]:
        metric = getattr(rax, f"{name}_metric")
        theirs = metric(scores, labels, where=where, topn=topn, reduce_fn=None)
        np.testing.assert_allclose(ours(scores, labels, where=where, topn=topn), theirs, rtol=1e-5)


@pytest.mark.parametrize("metric", [ndcg, dcg, mrr, arp])
def test_equal_scores_count_by_expectation(metric):
    """The mean over all orders of a list, each of which ranks equal scores as it has them."""
    rng = np.random.default_rng(2)
    options = {} if metric is arp else {"topn": 3}
    for _ in range(20):
        scores, labels = rng.integers(3, size=6), rng.integers(3, size=6)
        orders = [np.argsort(np.lexsort((order, -scores))) for order in permutations(range(6))]
        ranked = -np.array(orders, float)
        labels_, where = np.tile(labels, (len(ranked), 1)), np.ones(ranked.shape, bool)
        expected = metric(ranked, labels_, where=where, **options).mean()
        assert one(metric, scores, labels, **options) == pytest.approx(expected)


def test_scores_that_are_no_numbers_rank_last_but_ahead_of_padding():
    assert one(dcg, [np.nan, 1.0, 9.0], [1, 0, 0], where=[1, 1, 0]) == pytest.approx(1 / log2(3))


def test_correlation_is_pearsons_and_nan_without_variance():
    rng = np.random.default_rng(0)
    truth, found = rng.random(30), rng.random((4, 30))
    wanted = [np.corrcoef(truth, row)[0, 1] for row in found]
    np.testing.assert_allclose(correlation(truth, found), wanted)
    np.testing.assert_allclose(correlation(truth, 0.1 + 2 * truth[None]), 1)
    for constant in (1.0, 0.1):  # The mean of .1 is not .1 in binary.
        assert np.isnan(correlation(truth, np.full((1, 30), constant))).all()


def test_arp_closed_form():
    # Ranked by score: labels 0, 4, 1 at ranks 1, 2, 3.
    assert one(arp, [0.1, 0.9, 0.5], [1, 0, 4]) == pytest.approx((2 * 4 + 3 * 1) / 5)
    assert one(arp, [3, 2, 1], [2, 0, 0]) == 1
    assert one(arp, [1, 2, 3], [1, 0, 0]) == 3
    assert one(arp, [1, 2, 3], [0, 0, 0]) == 0
    assert one(arp, [1, 2, 9], [3, 1, 4], where=[1, 1, 0]) == 1.75


@pytest.mark.parametrize("listed", [False, True])
def test_shown_arp_is_that_of_the_rankings_shown(listed):
    rng = np.random.default_rng(1)
    scores, labels = rng.random((6, 4)), rng.integers(0, 5, (6, 4))
    where = np.arange(4) < np.array([4, 4, 3, 2, 4, 1])[:, None]
    order = np.argsort(np.where(where, -scores, np.inf), axis=-1)
    position = np.argsort(order, axis=-1)
    # Each list is shown 7 times, the sixth never.
    shown = np.where(where, 7, 0) * (np.arange(6) < 5)[:, None]
    if listed:
        document = np.tile(np.arange(4), (6, 1))
        counts = Counts(shown, 0 * shown, document, position)
    else:
        dense = shown[..., None] * (position[..., None] == np.arange(4))
        counts = Counts(dense, 0 * dense)
    expected = np.append(arp(scores, labels, where=where)[:5], 0)
    np.testing.assert_allclose(shown_arp(counts, labels, where=where), expected)

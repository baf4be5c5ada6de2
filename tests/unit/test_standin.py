import numpy as np
import pytest

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings
from twotowers.standins.rankings import BLOCK, generate

SHARES = (0.515, 0.325, 0.134, 0.019, 0.008)


def draw(split="test", queries=1500, seed=7) -> Rankings:
    return generate("mslr30k", split, queries=queries, seed=seed)


@pytest.fixture(scope="module")
def rankings() -> Rankings:
    return draw()


def same(one: Rankings, other: Rankings) -> bool:
    return all(
        np.array_equal(getattr(one, column), getattr(other, column))
        for column in ("query", "document", "label", "features")
    )


def lists(rankings: Rankings) -> list[np.ndarray]:
    return np.split(rankings.label, rankings.offsets[1:-1])


def test_the_same_arguments_give_the_same_data():
    assert same(draw(queries=40), draw(queries=40))
    assert not same(draw(queries=40), draw(queries=40, seed=8))
    assert not np.array_equal(draw(queries=40).label, draw("train", queries=40).label)


@pytest.mark.parametrize("queries", [1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_the_first_queries_do_not_depend_on_how_many_are_drawn(queries):
    many = draw(queries=3 * BLOCK)
    few = draw(queries=queries)
    assert len(few.queries) == queries
    assert same(few, many.take(slice(0, len(few.query))))


def test_query_ids_are_disjoint_and_documents_count_from_zero(rankings):
    ids = [draw(split, queries=50).queries for split in ("train", "validation", "test")]
    assert len(np.unique(ids)) == 150
    numbers = np.concatenate([np.arange(n) for n in rankings.lengths])
    assert np.array_equal(rankings.document, numbers)


def test_label_shares(rankings):
    shares = np.bincount(rankings.label.astype(int), minlength=5) / len(rankings.label)
    np.testing.assert_allclose(shares, SHARES, atol=0.01)


def test_list_lengths(rankings):
    assert np.median(rankings.lengths) == pytest.approx(109, abs=4)
    assert rankings.lengths.mean() == pytest.approx(120, abs=5)
    assert rankings.lengths.max() > 1000
    assert rankings.lengths.min() == 1
    assert np.mean(rankings.lengths < 25) == pytest.approx(0.011, abs=0.006)


def test_some_queries_have_no_relevant_document(rankings):
    share = np.mean([labels.max() < 1 for labels in lists(rankings)])
    assert 0.02 < share < 0.042


def test_ndcg_of_a_random_order_of_the_top_25(rankings):
    values = []
    discount = 1 / np.log2(2 + np.arange(10))
    for labels in lists(rankings):
        gain = 2 ** np.sort(labels)[::-1][:25] - 1
        if gain[0]:
            k = min(10, len(gain))
            # Every document is equally likely at every rank.
            values.append(gain.mean() * discount[:k].sum() / (gain[:k] @ discount[:k]))
    assert np.mean(values) == pytest.approx(0.56, abs=0.02)


def test_regimes_of_the_columns(rankings):
    features = rankings.features
    assert features.dtype == np.float32
    assert features.shape[1] == 136
    assert np.isfinite(features).all()
    assert (features >= 0).all(0).sum() > 80
    assert (features[:, 110:125] <= 0).all()  # log probabilities
    assert features.min() < -40
    assert features.max() >= 1e8
    assert ((features == 0).mean(0) > 0.7).sum() > 15  # anchors, clicks
    assert (features != np.round(features)).any(0).sum() > 60  # the others are counts
    starts = rankings.offsets[:-1]
    spread = np.maximum.reduceat(features, starts) - np.minimum.reduceat(features, starts)
    constant = np.flatnonzero((spread == 0).all(0))
    assert constant.tolist() == [15, 16, 17, 18, 19]  # idf belongs to the query


def test_streams_are_strongly_correlated(rankings):
    features = rankings.features[::20]
    correlation = np.corrcoef((np.sign(features) * np.log1p(np.abs(features))).T)
    np.fill_diagonal(correlation, 0)
    assert (np.abs(correlation).max(0) > 0.9).sum() > 60


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("mslr30", "train", 5, 1), "mslr30k"),
        (("mslr30k", "valid", 5, 1), "validation"),
        (("mslr30k", "train", 0, 1), "queries"),
        (("mslr30k", "train", 2.5, 1), "queries"),
        (("mslr30k", "train", 5, -1), "seed"),
    ],
)
def test_bad_arguments_are_named(arguments, word):
    name, split, queries, seed = arguments
    with pytest.raises(InputError, match=word):
        generate(name, split, queries=queries, seed=seed)

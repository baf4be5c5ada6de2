"""Stand-ins of rankings: reproducible, and with the shape of the real sets."""

import numpy as np
import pytest

from twotowers.files.rankings import Rankings
from twotowers.standins.lists import BLOCK, POPULATIONS
from twotowers.standins.rankings import generate
from twotowers.standins.vectors import BLOCK as VECTORS
from twotowers.standins.vectors import POPULATIONS as RECURRING

SHARES = (0.515, 0.325, 0.134, 0.019, 0.008)


# Hager (2026), Table 2.1: fewest documents, mean, median, 90th percentile, most.
LISTS = {"yahoo_ltr": (1, 24, 19, 49, 139), "istella_s_ltr": (3, 103, 120, 147, 182)}
WIDTHS = {"yahoo_ltr": 699, "istella_s_ltr": 220}
BLOCKS = dict.fromkeys(["mslr30k", *LISTS], BLOCK) | dict.fromkeys(RECURRING, VECTORS)


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


@pytest.mark.parametrize("name", BLOCKS)
def test_the_same_arguments_give_the_same_data(name):
    one = generate(name, "test", queries=40, seed=1)
    assert same(one, generate(name, "test", queries=40, seed=1))
    for split, seed in (("test", 2), ("train", 1)):
        other = generate(name, split, queries=40, seed=seed)
        assert not np.array_equal(one.label[:100], other.label[:100])
        assert not np.array_equal(one.features[:100], other.features[:100])


@pytest.mark.parametrize("name", BLOCKS)
def test_the_first_queries_do_not_depend_on_how_many_are_drawn(name):
    many = generate(name, "train", queries=3 * BLOCKS[name], seed=0)
    for queries in (1, BLOCKS[name] - 1, BLOCKS[name], BLOCKS[name] + 1):
        few = generate(name, "train", queries=queries, seed=0)
        assert len(few.queries) == queries
        assert same(few, many.take(slice(0, len(few.query))))


@pytest.mark.parametrize("name", LISTS)
def test_long_lists_are_those_of_the_real_sets(name):
    found = generate(name, "train", queries=700, seed=3)
    assert found.features.shape == (len(found.label), WIDTHS[name])
    assert found.features.dtype == found.label.dtype == np.float32
    assert set(found.label) == {0, 1, 2, 3, 4}
    assert len(found.queries) == 700
    whole = (found.features == np.round(found.features)).all()
    assert whole == POPULATIONS[name].counts
    assert found.features.min() >= 0
    assert found.features.max() <= (1e6 if whole else 1)
    fewest, mean, median, long, most = LISTS[name]
    # Four standard errors of 700 lists.
    assert found.lengths.mean() == pytest.approx(mean, abs=4 * found.lengths.std() / 700**0.5 + 1)
    assert np.median(found.lengths) == pytest.approx(median, abs=4)
    assert np.percentile(found.lengths, 90) == pytest.approx(long, rel=0.08)
    assert fewest <= found.lengths.min() <= found.lengths.max() <= most


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

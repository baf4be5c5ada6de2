"""Stand-ins of rankings: reproducible, with the shape of the real sets, and rates of recurrence."""

from dataclasses import replace

import numpy as np
import pytest

from twotowers.files.rankings import Rankings
from twotowers.standins.lists import BLOCK, POPULATIONS
from twotowers.standins.rankings import generate
from twotowers.standins.vectors import BLOCK as VECTORS
from twotowers.standins.vectors import POPULATIONS as RECURRING
from twotowers.standins.vectors import WIDTH

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


# Vectors that recur.


@pytest.fixture(scope="module", params=[*RECURRING])
def named(request) -> tuple[str, Rankings]:
    return request.param, generate(request.param, "train", queries=4096, seed=3)


def recurrences(rankings: Rankings) -> tuple[np.ndarray, np.ndarray]:
    """[rows] number of each row's vector, and [vectors] how many queries each occurs in."""
    rows = np.ascontiguousarray(rankings.features).view(f"V{4 * WIDTH}")[:, 0]
    vector = np.unique(rows, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([vector, rankings.query]), axis=0)
    return vector, np.bincount(pairs[:, 0])


def with_two_labels(rankings: Rankings) -> np.ndarray:
    """[vectors] whether each is listed with different labels."""
    vector, queries = recurrences(rankings)
    low = np.full(len(queries), 5.0)
    high = np.full(len(queries), -1.0)
    np.minimum.at(low, vector, rankings.label)
    np.maximum.at(high, vector, rankings.label)
    return low != high


def test_a_vector_that_is_listed_again_may_have_another_label(named, monkeypatch):
    name, rankings = named
    vector, _ = recurrences(rankings)
    twice = np.bincount(vector) == 2
    # Labels that are drawn anew are often equal.
    share = with_two_labels(rankings)[twice].mean()
    assert 0.1 < share / RECURRING[name].relabelled < 1
    monkeypatch.setitem(RECURRING, name, replace(RECURRING[name], relabelled=0.0))
    assert not with_two_labels(generate(name, "train", queries=640, seed=3)).any()


def test_documents_of_other_queries_are_relevant_ones(named, monkeypatch):
    name, _ = named
    alone = replace(RECURRING[name], repeated=0.0, heads=0, headed=0, relabelled=0.0)
    monkeypatch.setitem(RECURRING, name, replace(alone, linked=0.0))
    _, queries = recurrences(generate(name, "train", queries=2048, seed=3))
    assert (queries == 1).all()
    monkeypatch.setitem(RECURRING, name, alone)
    linked = generate(name, "train", queries=2048, seed=3)
    vector, queries = recurrences(linked)
    share = (queries > 1).mean() / alone.linked
    assert 0.01 < share < 0.5
    elsewhere = queries[vector] > 1
    assert linked.label[elsewhere].mean() > linked.label.mean() + 0.3


def test_share_of_queries_asked_again(named):
    name, rankings = named
    # A query that is asked again has most documents of the first one. Links change a few.
    vector, _ = recurrences(rankings)
    lists = np.split(vector, rankings.offsets[1:-1])
    repeats = sum(
        any(len(set(one) & set(other)) > 0.7 * len(set(one)) for other in lists[start:number])
        for number, one in enumerate(lists)
        for start in [number - number % VECTORS]
    )
    # A block's first query has no earlier one to repeat.
    expected = RECURRING[name].repeated * 4096 * (1 - 1 / VECTORS)
    assert repeats == pytest.approx(expected, abs=5 * expected**0.5)


def test_share_of_documents_listed_twice(named):
    name, rankings = named
    following = rankings.query[1:] == rankings.query[:-1]
    same_vector = (rankings.features[1:] == rankings.features[:-1]).all(1)
    share = same_vector[following].mean()
    # Quality is symmetric about its middle, nearly; 100,000 documents are few copies.
    expected = np.mean(RECURRING[name].listed_twice)
    assert share == pytest.approx(expected, rel=0.1, abs=5 * (expected / 1e5) ** 0.5)


def test_vectors_that_head_many_lists():
    # Enough queries that no vector recurs as often by repeated queries alone.
    number = 16_384
    rankings = generate("yahoo", "train", queries=number, seed=3)
    vector, queries = recurrences(rankings)
    first = vector[rankings.offsets[:-1]]
    heads = np.argsort(queries)[-2:]
    times = np.isin(first, heads).sum()
    expected = 2 * RECURRING["yahoo"].headed * number
    assert times == pytest.approx(expected, abs=5 * expected**0.5)
    assert set(rankings.label[np.isin(vector, heads)]) == {4}

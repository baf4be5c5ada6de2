"""Stand-ins with recurring vectors: reproducible, and with the rates of recurrence."""

from dataclasses import replace

import numpy as np
import pytest

from twotowers.files.rankings import Rankings
from twotowers.standins.rankings import generate
from twotowers.standins.vectors import BLOCK, POPULATIONS, WIDTH


@pytest.fixture(scope="module", params=[*POPULATIONS])
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
    assert 0.1 < share / POPULATIONS[name].relabelled < 1
    monkeypatch.setitem(POPULATIONS, name, replace(POPULATIONS[name], relabelled=0.0))
    assert not with_two_labels(generate(name, "train", queries=640, seed=3)).any()


def test_documents_of_other_queries_are_relevant_ones(named, monkeypatch):
    name, _ = named
    alone = replace(POPULATIONS[name], repeated=0.0, heads=0, headed=0, relabelled=0.0)
    monkeypatch.setitem(POPULATIONS, name, replace(alone, linked=0.0))
    _, queries = recurrences(generate(name, "train", queries=2048, seed=3))
    assert (queries == 1).all()
    monkeypatch.setitem(POPULATIONS, name, alone)
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
        for start in [number - number % BLOCK]
    )
    # A block's first query has no earlier one to repeat.
    expected = POPULATIONS[name].repeated * 4096 * (1 - 1 / BLOCK)
    assert repeats == pytest.approx(expected, abs=5 * expected**0.5)


def test_share_of_documents_listed_twice(named):
    name, rankings = named
    following = rankings.query[1:] == rankings.query[:-1]
    same_vector = (rankings.features[1:] == rankings.features[:-1]).all(1)
    share = same_vector[following].mean()
    # Quality is symmetric about its middle, nearly; 100,000 documents are few copies.
    expected = np.mean(POPULATIONS[name].listed_twice)
    assert share == pytest.approx(expected, rel=0.1, abs=5 * (expected / 1e5) ** 0.5)


def test_vectors_that_head_many_lists():
    # Enough queries that no vector recurs as often by repeated queries alone.
    number = 16_384
    rankings = generate("yahoo", "train", queries=number, seed=3)
    vector, queries = recurrences(rankings)
    first = vector[rankings.offsets[:-1]]
    heads = np.argsort(queries)[-2:]
    times = np.isin(first, heads).sum()
    expected = 2 * POPULATIONS["yahoo"].headed * number
    assert times == pytest.approx(expected, abs=5 * expected**0.5)
    assert set(rankings.label[np.isin(vector, heads)]) == {4}

"""Intervention and merging against all spanning trees, by brute force."""

from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability import graph
from twotowers.identifiability.graph import (
    intervention_cost,
    merge_pairs,
    node_intervention,
    node_merging,
    random_intervention,
)
from twotowers.randomness import stream

FEATURES, FACTORS = 5, 5
ROWS = st.lists(
    st.tuples(st.integers(0, FEATURES - 1), st.integers(0, FACTORS - 1)), min_size=1, max_size=8
)
# Few values make ties common.
ESTIMATE = st.sampled_from([0.1, 0.2, 0.5, 1.0]) | st.floats(0.01, 1)


def vectors(length):
    return st.lists(ESTIMATE, min_size=length, max_size=length).map(np.array)


def columns(rows):
    return np.array(rows).T


def cheapest_tree(component, cost) -> float:
    """Lowest total over all spanning trees of the components, for cost(members, members)."""
    groups = [np.flatnonzero(component == number) for number in range(component.max() + 1)]
    edges = {(a, b): cost(groups[a], groups[b]) for a, b in combinations(range(len(groups)), 2)}
    return min(sum(edges[edge] for edge in tree) for tree in spanning_trees(len(groups)))


@cache
def spanning_trees(nodes) -> list:
    trees = [
        tree
        for tree in combinations(combinations(range(nodes), 2), nodes - 1)
        if merge_pairs(np.array(tree), nodes).max() == 0
    ]
    # Cayley's formula.
    assert len(trees) == max(nodes ** (nodes - 2), 1)
    return trees


def kruskal(component, edges) -> float:
    """Total of the minimum spanning tree over components; edges (cost, factor, factor) sorted."""
    group, total = component.copy(), 0.0
    for cost, one, other in edges:
        if group[one] != group[other]:
            group[group == group[one]] = group[other]
            total += cost
    return total


def swap_cost(rows, relevance, examination):
    """Eqs. 3 to 6 as printed: the cheapest of all swaps in both directions."""

    def cost(one, other):
        return min(
            (
                intervention_cost(relevance[x], examination[source], examination[target])
                for here, there in ((one, other), (other, one))
                for x, source in rows
                if source in here
                for target in there
            ),
            default=np.inf,
        )

    return cost


def assert_connects(rows, found, factors=FACTORS):
    """Assert that the swaps are possible, are as many as needed, and connect all components."""
    components = factor_components(*columns(rows), factors=factors).max() + 1
    assert len(found.feature) == len(found.source) == len(found.target) == components - 1
    assert set(zip(found.feature, found.source, strict=True)) <= set(rows)
    swapped = [*rows, *zip(found.feature, found.target, strict=True)]
    assert factor_components(*columns(swapped), factors=factors).max() == 0


@given(ROWS, vectors(FEATURES), vectors(FACTORS))
def test_no_intervention_is_cheaper(rows, relevance, examination):
    found = node_intervention(*columns(rows), relevance, examination)
    assert_connects(rows, found)
    np.testing.assert_allclose(
        found.cost,
        [
            1 / (relevance[x] * examination[s]) + 1 / (relevance[x] * examination[t]) - 2
            for x, s, t in zip(found.feature, found.source, found.target, strict=True)
        ],
    )
    component = factor_components(*columns(rows), factors=FACTORS)
    expected = cheapest_tree(component, swap_cost(rows, relevance, examination))
    assert found.total == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_paper_swaps_the_most_relevant_from_first_to_first():
    """K = 2: positions 1-4 and 5-10 joined by the best document of one at the other's top."""
    position = np.repeat(np.arange(10), 2)
    document = np.array([0, 1, 1, 2, 2, 3, 3, 0, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 4])
    examination = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
    relevance = np.full(10, 0.1)
    relevance[0] = 0.5
    found = node_intervention(document, position, relevance, examination)
    assert (found.feature, found.source, found.target) == ([0], [0], [4])
    assert found.cost == pytest.approx(1 / (0.5 * 0.68) + 1 / (0.5 * 0.28) - 2)
    # A relevant document at the top of the lower positions is as good.
    relevance[[0, 4]] = relevance[[4, 0]]
    found = node_intervention(document, position, relevance, examination)
    assert (found.feature, found.source, found.target) == ([4], [4], [0])


@given(ROWS, st.integers(0, 1000))
def test_random_swaps_connect(rows, seed):
    relevance, examination = np.full(FEATURES, 0.5), np.full(FACTORS, 0.25)
    rng = stream("test of swaps", seed)
    found = random_intervention(*columns(rows), relevance, examination, rng=rng)
    assert_connects(rows, found)
    np.testing.assert_allclose(found.cost, 2 / (0.5 * 0.25) - 2)


def test_random_swaps_have_the_law_of_uniform_costs():
    """Against drawing a cost for each of the swaps between three components, and trying all."""
    # Components {0}, {1, 2} and {3}, and a repeated row, which adds no swap.
    rows = [(0, 0), (1, 1), (1, 2), (2, 3), (3, 3), (4, 3), (4, 3)]
    component = np.array([0, 1, 1, 2])
    swaps = [
        (x, s, t)
        for (x, s), t in product(dict.fromkeys(rows), range(4))
        if component[s] != component[t]
    ]
    rng, draws = stream("test of uniform costs"), 1000
    # Of three pairs of components, the two whose cheapest swaps are cheapest.
    costs = rng.random((200_000, len(swaps)))
    pair = np.array([component[[source, target]].sum() for _, source, target in swaps])
    swap = np.array([np.where(pair == each, costs, 2).argmin(axis=1) for each in (1, 2, 3)])
    dearest = np.take_along_axis(costs.T, swap, axis=0).argmax(axis=0)
    taken = np.bincount(swap[np.arange(3)[:, None] != dearest], minlength=len(swaps))
    expected, found = draws * taken / len(costs), dict.fromkeys(swaps, 0)
    for _ in range(draws):
        one = random_intervention(*columns(rows), np.ones(5), np.ones(4), rng=rng)
        for each in zip(one.feature, one.source, one.target, strict=True):
            found[tuple(int(index) for index in each)] += 1
    # Five standard deviations: half of a count of 100.
    difference = np.array([*found.values()]) - expected
    assert (np.abs(difference) < 5 * np.sqrt(expected)).all()
    assert sum(found.values()) == 2 * draws


def distance_cost(points):
    def cost(one, other):
        return min(np.linalg.norm(points[a] - points[b]) for a, b in product(one, other))

    return cost


@pytest.mark.parametrize("neighbours", [1, 32])
@given(
    ROWS,
    st.lists(
        st.lists(st.integers(0, 3) | st.floats(-2, 2), min_size=2, max_size=2),
        min_size=FACTORS,
        max_size=FACTORS,
    ),
)
def test_no_merging_is_cheaper(neighbours, rows, points):
    points = np.array(points, float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "NEIGHBOURS", neighbours)
        found = node_merging(*columns(rows), points)
    component = factor_components(*columns(rows), factors=FACTORS)
    assert len(found.pairs) == len(found.cost) == component.max()
    np.testing.assert_allclose(
        found.cost, np.linalg.norm(points[found.pairs[:, 0]] - points[found.pairs[:, 1]], axis=1)
    )
    expected = cheapest_tree(component, distance_cost(points))
    assert found.total == pytest.approx(expected, rel=1e-12, abs=1e-12)
    feature, factor = columns(rows)
    assert (
        factor_components(feature, found.merged[factor], factors=found.merged.max() + 1).max() == 0
    )


@pytest.mark.parametrize("chunk", [3, 1024])
@pytest.mark.parametrize("joined", [0, 40, 100])
def test_merging_many_contexts(monkeypatch, joined, chunk):
    """Contexts x positions as in Appendix C.3, large groups, ties and distances of 0 among them."""
    monkeypatch.setattr(graph, "NEIGHBOURS", 2)
    monkeypatch.setattr(graph, "CHUNK", chunk)
    rng = stream("test of merging", joined)
    context, position = (each.ravel() for each in np.indices((40, 4)))
    points = np.column_stack([rng.normal(0, 0.35, (40, 3))[context], 10 * position])
    points[context == 1] = points[context == 0]
    feature, factor = rng.integers(0, max(joined // 2, 1), joined), rng.choice(160, joined)
    component = factor_components(feature, factor, factors=160)
    found = node_merging(feature, factor, points)
    assert len(found.pairs) == component.max()
    edges = sorted(
        (np.linalg.norm(points[one] - points[other]), one, other)
        for one, other in combinations(range(160), 2)
    )
    assert found.total == pytest.approx(kruskal(component, edges))
    seen_under = found.merged[factor]
    assert factor_components(feature, seen_under, factors=found.merged.max() + 1).max() == 0


def test_the_papers_positions():
    """Figure 5: K = 2, 3, 4 merge 4 & 5; 4 & 5, 7 & 8; and 3 & 4, 6 & 7, 8 & 9 (from 1)."""
    for ends, pairs in (
        ([4, 10], [[3, 4]]),
        ([4, 7, 10], [[3, 4], [6, 7]]),
        ([3, 6, 8, 10], [[2, 3], [5, 6], [7, 8]]),
    ):
        position = np.arange(10)
        found = node_merging(
            np.searchsorted(ends, position, side="right"), position, 1.0 + position[:, None]
        )
        assert sorted(found.pairs.tolist()) == pairs
        assert found.total == len(pairs)
        np.testing.assert_array_equal(
            found.merged, position - np.searchsorted([high for _, high in pairs], position, "right")
        )


def test_pairs_chain():
    chain = np.array(list(pairwise([1, 4, 2])))
    assert merge_pairs(chain, 6).tolist() == [0, 1, 1, 2, 1, 3]
    assert merge_pairs(np.zeros((0, 2), int), 3).tolist() == [0, 1, 2]
    assert merge_pairs([(0, 3)], 4).tolist() == [0, 1, 2, 0]


def test_a_connected_log_needs_nothing():
    rows = columns([(0, 0), (0, 1)])
    assert node_merging(*rows, np.arange(2.0)[:, None]).pairs.shape == (0, 2)
    assert node_merging(*rows, np.arange(2.0)[:, None]).merged.tolist() == [0, 1]
    for swaps in (
        node_intervention(*rows, np.ones(1), np.ones(2)),
        random_intervention(*rows, np.ones(1), np.ones(2), rng=stream("unused")),
    ):
        assert len(swaps.feature) == 0
        assert swaps.total == 0

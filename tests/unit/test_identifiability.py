"""Connected components of bias factors, against SciPy's disjoint sets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import DisjointSet

from twotowers.fitting import pair_counts
from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability import graph


def brute_force(rows, factors) -> list[int]:
    """Join factors that share a document, one pair at a time."""
    joined = DisjointSet(range(factors))
    for (document, factor), (other_document, other_factor) in combinations(rows, 2):
        if document == other_document:
            joined.merge(factor, other_factor)
    return [joined[factor] for factor in range(factors)]


def same_partition(left, right) -> bool:
    pairs = set(zip(left, right, strict=True))
    return len(pairs) == len(set(left)) == len(set(right))


def components(rows, factors):
    document, factor = (np.array(column, int) for column in zip(*rows, strict=True))
    return factor_components(document, factor, factors=factors)


def test_an_empty_log_identifies_nothing():
    empty = np.zeros(0, int)
    assert factor_components(empty, empty, factors=3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("block", [1, 2, 5])
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 7)), min_size=1, max_size=40))
def test_against_disjoint_sets(block, rows):
    with pytest.MonkeyPatch.context() as patch:
        # A log of 40 rows and 15 nodes then takes several blocks.
        patch.setattr(pair_counts, "BLOCK", block)
        result = components(rows, 8)
    assert same_partition(result.tolist(), brute_force(rows, 8))
    # Numbered from 0 without gaps.
    assert sorted(set(result.tolist())) == list(range(result.max() + 1))


def naive_edges(rows) -> set:
    seen = {}
    for feature, factor in rows:
        seen.setdefault(feature, set()).add(factor)
    return {pair for clique in seen.values() for pair in combinations(sorted(clique), 2)}


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=40))
def test_edges_against_expanded_cliques(block, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "BLOCK", block)
        feature, factor = np.array(rows).T
        found = graph.number_of_edges(feature, factor, factors=8)
    assert found == len(naive_edges(rows))

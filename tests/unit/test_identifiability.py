"""Connected components of bias factors, against union-find written out here."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twotowers.identifiability import factor_components


def brute_force(rows, factors) -> list[int]:
    """Factors that share a document, directly or by way of others, joined one pair at a time."""
    parent = list(range(factors))

    def root(node):
        while parent[node] != node:
            node = parent[node]
        return node

    for document, factor in rows:
        for other_document, other_factor in rows:
            if document == other_document:
                parent[root(factor)] = root(other_factor)
    return [root(factor) for factor in range(factors)]


def same_partition(left, right) -> bool:
    pairs = set(zip(left, right, strict=True))
    return len(pairs) == len(set(left)) == len(set(right))


def components(rows, factors):
    document, factor = (np.array(column, int) for column in zip(*rows, strict=True))
    return factor_components(document, factor, factors=factors)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 7)), min_size=1, max_size=16))
def test_against_union_find(rows):
    result = components(rows, 8)
    assert same_partition(result.tolist(), brute_force(rows, 8))
    # Numbered from 0 without gaps.
    assert sorted(set(result.tolist())) == list(range(result.max() + 1))


def test_a_chain_of_swaps_connects_and_a_fixed_ranking_does_not():
    fixed = [(d, d) for d in range(5)]
    assert len(set(components(fixed, 5))) == 5
    chain = fixed + [(d, d + 1) for d in range(4)]
    assert len(set(components(chain, 5))) == 1
    broken = [row for row in chain if row != (2, 3)]
    assert components(broken, 5).tolist() == [0, 0, 0, 1, 1]


def test_unseen_factors_stand_alone():
    assert same_partition(components([(0, 0), (0, 2)], 4).tolist(), [0, 1, 0, 2])


def test_an_empty_log_identifies_nothing():
    empty = np.zeros(0, int)
    assert factor_components(empty, empty, factors=3).tolist() == [0, 1, 2]


def test_repeated_rows_change_nothing():
    rows = [(0, 0), (0, 1), (1, 2)]
    np.testing.assert_array_equal(components(rows * 200, 3), components(rows, 3))

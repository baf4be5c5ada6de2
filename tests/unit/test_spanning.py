"""Spanning forests, against taking edges one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twotowers.identifiability.graph import spanning_forest

NODES = 6
EDGES = st.lists(st.tuples(*[st.integers(0, NODES - 1)] * 2), max_size=12)


@given(EDGES)
def test_edges_one_by_one(edges):
    tree, expected = list(range(NODES)), []
    for index, (one, other) in enumerate(edges):
        if tree[one] != tree[other]:
            tree = [tree[one] if at == tree[other] else at for at in tree]
            expected.append(index)
    kept, found = spanning_forest(np.array(edges, int).reshape(-1, 2), NODES)
    assert kept.tolist() == expected
    assert set(found) == set(range(len(set(tree))))
    same = np.array(tree)
    np.testing.assert_array_equal(found[:, None] == found, same[:, None] == same)

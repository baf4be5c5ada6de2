"""Spanning forests, for both kinds of repair."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree


def spanning_forest(ends: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Kruskal's algorithm on edges that are sorted by cost.

    Args:
        ends: [edges, 2] integers in [0, nodes), perhaps with loops and repeated edges.
        nodes: number of nodes.

    Returns:
        [kept] indices of the edges that make no cycle with those before them, ascending, and
        [nodes] the tree of each node, from 0 without gaps.
    """
    ends = np.sort(ends, axis=1)
    first = np.sort(np.unique(ends, axis=0, return_index=True)[1])
    first = first[ends[first, 0] != ends[first, 1]]
    # Ranks stand for costs, since a cost of 0 would be no edge.
    ranks = np.arange(1, len(first) + 1)
    graph = coo_array((ranks, tuple(ends[first].T)), shape=(nodes, nodes)).tocsr()
    tree = minimum_spanning_tree(graph)
    return first[np.sort(tree.data.astype(int)) - 1], connected_components(tree, directed=False)[1]

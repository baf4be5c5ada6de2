"""Spanning forests: the edges that join what was apart, whichever repair proposes them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree


def spanning_forest(ends: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Kruskal's algorithm on edges in the order given, which is that of their costs.

    Args:
        ends: [edges, 2] integers in [0, nodes); loops and repeated edges may be among them.
        nodes: number of nodes.

    Returns:
        [kept] indices of the edges that make no cycle with those before them, ascending, and
        [nodes] the tree of each node, from 0 without gaps.
    """
    ends = np.sort(ends, axis=1)
    first = np.sort(np.unique(ends, axis=0, return_index=True)[1])
    first = first[ends[first, 0] != ends[first, 1]]
    # Ranks for costs: these may be 0, which would be no edge.
    ranks = np.arange(1, len(first) + 1)
    graph = coo_array((ranks, tuple(ends[first].T)), shape=(nodes, nodes)).tocsr()
    tree = minimum_spanning_tree(graph)
    return first[np.sort(tree.data.astype(int)) - 1], connected_components(tree, directed=False)[1]

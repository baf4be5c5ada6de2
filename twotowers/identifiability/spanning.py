"""Spanning forests, which both kinds of repair use."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from twotowers.files.distinct import number_rows


def spanning_forest(ends: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The minimum spanning forest of edges that are sorted by cost.

    It keeps each edge that makes no cycle with the edges before it, as Kruskal's algorithm does.

    Args:
        ends: [edges, 2] integers in [0, nodes). Loops and repeated edges are allowed.
        nodes: number of nodes.

    Returns:
        [kept] indices of the edges kept, ascending; [nodes] the tree of each node, from 0 without
        gaps.

    Example:
        >>> kept, tree = spanning_forest(np.array([[0, 1], [1, 0], [2, 3]]), nodes=5)
        >>> kept.tolist(), tree.tolist()
        ([0, 2], [0, 0, 1, 1, 2])
    """
    ends = np.sort(ends, axis=1)
    _, first = number_rows(ends)
    first = first[ends[first, 0] != ends[first, 1]]
    # Ranks from 1 stand for costs, because a sparse graph has no edges of cost 0.
    ranks = np.arange(1, len(first) + 1)
    graph = coo_array((ranks, tuple(ends[first].T)), shape=(nodes, nodes)).tocsr()
    tree = minimum_spanning_tree(graph)
    return first[np.sort(tree.data.astype(int)) - 1], connected_components(tree, directed=False)[1]

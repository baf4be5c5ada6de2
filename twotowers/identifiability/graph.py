"""The identifiability graph of a log (Hager et al. 2025, Theorem 4.1; Chen et al. 2024, Theorem 1).

Its nodes are bias factors (positions, or position x device x ...). Its edges join factors under
which the same document, or feature vector, was seen. The bias parameters are identified up to one
constant if and only if the graph is connected. The code uses the bipartite graph between documents
and factors. It has the same components, and time is linear in the rows of the log.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from twotowers.files.distinct import number_rows

BLOCK = 1 << 22
"""Entries of a sparse product in memory at a time."""


def number_of_edges(feature: np.ndarray, factor: np.ndarray, *, factors: int) -> int:
    """Edges of the identifiability graph (Chen et al. 2024, Table 4): unordered pairs of different
    factors that share a feature vector. Equal vectors of different documents have equal numbers.

    It is half of the entries off the diagonal of S S', where S [factors, features] is True where
    seen. The product may be dense, so its rows are computed a block at a time.
    """
    if not len(feature):
        return 0
    key = np.unique(feature.astype(np.int64) * factors + factor)
    feature, factor = np.divmod(key, factors)
    # A feature vector seen under a single factor makes no edge.
    shared = np.bincount(feature)[feature] > 1
    feature, factor = np.unique(feature[shared], return_inverse=True)[1], factor[shared]
    if not len(feature):
        return 0
    seen = csr_array(
        (np.ones(len(feature), bool), (factor, feature)), shape=(factors, feature.max() + 1)
    )
    seen_by = seen.T.tocsr()
    paths = seen @ np.diff(seen_by.indptr).astype(np.int64)
    most = np.cumsum(np.minimum(paths, factors))
    starts = np.unique(np.searchsorted(most, np.arange(0, most[-1], BLOCK), side="right"))
    ends = np.append(starts[1:], factors)
    both_ways = sum(
        (seen[start:end] @ seen_by).nnz for start, end in zip(starts, ends, strict=True)
    ) - np.count_nonzero(paths)
    return both_ways // 2


def spanning_forest(ends: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The minimum spanning forest of edges [edges, 2] that are sorted by cost.

    It keeps each edge that makes no cycle with the edges before it, as Kruskal's algorithm does.
    Returns ascending indices of the edges kept, and the tree of each node, from 0 without gaps.
    """
    ends = np.sort(ends, axis=1)
    _, first = number_rows(ends)
    first = first[ends[first, 0] != ends[first, 1]]
    # Ranks from 1 stand for costs, because a sparse graph has no edges of cost 0.
    ranks = np.arange(1, len(first) + 1)
    graph = coo_array((ranks, tuple(ends[first].T)), shape=(nodes, nodes)).tocsr()
    tree = minimum_spanning_tree(graph)
    return first[np.sort(tree.data.astype(int)) - 1], connected_components(tree, directed=False)[1]

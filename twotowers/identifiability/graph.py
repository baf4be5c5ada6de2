"""Does a log identify its bias parameters? (Hager et al. 2025, Theorem 4.1 and Appendix A;
Chen et al. 2024, Theorem 1)

Bias factors (positions, or position x device x ...) are identified up to one constant if
and only if they are connected by documents, or feature vectors, seen under several of
them. Cliques are never expanded: components of the bipartite graph between documents and
factors are those of the graph between factors, in time linear in the rows of the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

BLOCK = 1 << 22
"""Rows of a log joined at a time, and entries of a sparse product held at a time."""


@dataclass(frozen=True)
class GraphStatistics:
    """The identifiability graph in numbers (Chen et al. 2024, Table 4).

    Attributes:
        nodes: bias factors.
        edges: unordered pairs of different factors that share a feature vector.
        components: connected components.
        sizes: [components] their numbers of factors, largest first.
    """

    nodes: int
    edges: int
    components: int
    sizes: np.ndarray


def factor_components(document: np.ndarray, factor: np.ndarray, *, factors: int) -> np.ndarray:
    """The connected component of each bias factor (Chen et al. 2024, Theorem 1, Algorithm 1).

    Args:
        document: [rows] non-negative integers naming the document or feature vector shown.
        factor: [rows] integers in [0, factors) naming the bias factor it was shown under.
        factors: number of bias factors; one that was never seen is a component of its own.

    Returns:
        [factors] component numbers from 0; one component means identified.
    """
    documents = int(document.max()) + 1 if len(document) else 0
    nodes = factors + documents
    label = np.arange(nodes, dtype=np.int32 if nodes < 2**31 else np.int64)
    # A block is joined to the components of those before it, so that what is held beside the
    # log is a block and a number per node; as a block has no fewer rows than there are nodes,
    # renumbering the nodes after each stays linear in the rows.
    step = max(BLOCK, nodes)
    for start in range(0, len(document), step):
        block = slice(start, start + step)
        left, right = label[factor[block]], label[factors:][document[block]]
        apart = left != right
        left, right = left[apart], right[apart]
        if len(left):
            edges = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(nodes, nodes))
            label = connected_components(edges, directed=False)[1][label]
    return np.unique(label[:factors], return_inverse=True)[1]


def graph_statistics(feature: np.ndarray, factor: np.ndarray, *, factors: int) -> GraphStatistics:
    """Nodes, edges and components of the identifiability graph (Chen et al. 2024, Table 4).

    Args:
        feature: [rows] non-negative integers naming the feature vector shown; equal vectors
            have equal numbers, whatever their documents.
        factor: [rows] integers in [0, factors) naming the bias factor it was shown under.
        factors: number of bias factors. All count as nodes: where the never seen ones are not
            to count, as in the paper, number the seen ones.
    """
    sizes = np.bincount(factor_components(feature, factor, factors=factors))
    return GraphStatistics(
        nodes=factors,
        edges=_edges(feature, factor, factors),
        components=len(sizes),
        sizes=np.sort(sizes)[::-1],
    )


def _edges(feature: np.ndarray, factor: np.ndarray, factors: int) -> int:
    """Entries off the diagonal of S S', halved, where S [factors, features] says who saw what.

    Rows of the product are made a block at a time, as it may be dense.
    """
    if not len(feature):
        return 0
    key = np.unique(feature.astype(np.int64) * factors + factor)
    feature, factor = np.divmod(key, factors)
    # A feature vector seen under one factor only makes no edge.
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

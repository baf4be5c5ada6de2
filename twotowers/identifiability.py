"""Does a log identify its bias parameters? (Hager et al. 2025, Theorem 4.1 and Appendix A;
Chen et al. 2024, Theorem 1)

Bias factors (positions, or position x device x ...) are identified up to one constant if
and only if they are connected by documents, or feature vectors, seen under several of
them. Cliques are never expanded: components of the bipartite graph between documents and
factors are those of the graph between factors, in time linear in the rows of the log.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def factor_components(document: np.ndarray, factor: np.ndarray, *, factors: int) -> np.ndarray:
    """The connected component of each bias factor.

    Args:
        document: [rows] non-negative integers naming the document or feature vector shown.
        factor: [rows] integers in [0, factors) naming the bias factor it was shown under.
        factors: number of bias factors; one that was never seen is a component of its own.

    Returns:
        [factors] component numbers from 0; one component means identified.
    """
    documents = int(document.max()) + 1 if len(document) else 0
    nodes = factors + documents
    edges = coo_array(
        (np.ones(len(document), bool), (factor, factors + document)), shape=(nodes, nodes)
    )
    labels = connected_components(edges, directed=False)[1][:factors]
    return np.unique(labels, return_inverse=True)[1]

"""How much evidence holds an identifiability graph together: its weakest link."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

MOST = 2_000
"""The most bias factors whose links are weighed: each pair of them takes 8 bytes."""
BLOCK = 1 << 22
"""Pairs that are in memory at a time."""


def strengths(
    feature: np.ndarray, factor: np.ndarray, clicks: np.ndarray, *, factors: int
) -> np.ndarray:
    """Clicks by which each pair of bias factors can be compared.

    Both factors of a pair are compared on the feature vectors that both show. If these got a and b
    clicks there, the logarithm of the ratio of their click rates has a variance of about
    1 / a + 1 / b. So each vector counts as a b / (a + b) clicks, and vectors add up.

    Args:
        feature: [rows] integers naming the feature vector shown.
        factor: [rows] integers in [0, factors) naming the bias factor it was shown under.
        clicks: [rows] clicks, above 0; a small number stands for none.
        factors: number of bias factors.

    Returns:
        [factors, factors] symmetric; 0 for factors that share no vector, and on the diagonal.

    Example:
        >>> once = np.array([10.0, 10, 30, 10])
        >>> strengths(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), once, factors=3).tolist()
        [[0.0, 5.0, 0.0], [5.0, 0.0, 7.5], [0.0, 7.5, 0.0]]
    """
    key, number = np.unique(feature.astype(np.int64) * factors + factor, return_inverse=True)
    weight = np.bincount(number, clicks, len(key))
    feature, factor = np.divmod(key, factors)
    starts = np.flatnonzero(np.append(True, feature[1:] != feature[:-1])[: len(feature)])
    sizes = np.diff(starts, append=len(feature))
    found = np.zeros(factors * factors)
    for size in np.unique(sizes[sizes > 1]):
        one, other = np.triu_indices(size, 1)
        alike = starts[sizes == size]
        for some in np.array_split(alike, -(-len(alike) * len(one) // BLOCK)):
            at = some[:, None] + one, some[:, None] + other
            both = weight[at[0]] * weight[at[1]] / (weight[at[0]] + weight[at[1]])
            pair = factor[at[0]] * factors + factor[at[1]]
            found += np.bincount(pair.ravel(), both.ravel(), len(found))
    upper = found.reshape(factors, factors)
    return upper + upper.T


def weakest_link(strength: np.ndarray) -> tuple[int, int, float] | None:
    """The weakest link of the maximum spanning forest: two factors, and its strength.

    Args:
        strength: see `strengths`.

    Returns:
        None if no two factors are linked.

    Example:
        >>> weakest_link(np.array([[0.0, 5, 0], [5, 0, 7.5], [0, 7.5, 0]]))
        (0, 1, 5.0)
    """
    if not strength.any():
        return None
    inverse = np.divide(1, strength, out=np.zeros(strength.shape), where=strength > 0)
    tree = minimum_spanning_tree(csr_array(inverse)).tocoo()
    at = int(tree.data.argmax())
    one, other = sorted((int(tree.coords[0][at]), int(tree.coords[1][at])))
    return one, other, float(strength[one, other])

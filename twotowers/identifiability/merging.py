"""Connect an identifiability graph by treating bias factors as one: node merging
(Chen et al. 2024, Section 4.2, Algorithm 3).

The result is a minimum spanning tree of the complete graph between K components, found without
computing all K^2 costs. Line 12 of the printed algorithm records the component G_j, which was found
already, so the algorithm would not end. The code follows the text of Appendix B.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.graph import spanning_forest

NEIGHBOURS = 32
"""Number of nearest neighbours kept per factor. More are looked up when needed."""

CHUNK = 1024
"""Factors of a large group whose neighbours are looked up at a time."""


@dataclass(frozen=True)
class Merging:
    """Pairs of bias factors to treat as one, one fewer than the log has components.

    Attributes:
        pairs: [pairs, 2] bias factors, the lower number first.
        cost: [pairs] distance of each pair's bias features.
        merged: [factors] number of each bias factor after merging, from 0 without gaps.
    """

    pairs: np.ndarray
    cost: np.ndarray
    merged: np.ndarray

    @property
    def total(self) -> float:
        """Sum of the costs."""
        return float(self.cost.sum())


def node_merging(feature: np.ndarray, factor: np.ndarray, bias_features: np.ndarray) -> Merging:
    """The cheapest merging that connects a log (Chen et al. 2024, Section 4.2, Algorithm 3).

    The cost is the Euclidean distance of bias features [factors, dimensions] (Eq. 7), so their
    scales matter. The result is an exact minimum spanning tree, found by Boruvka's algorithm with
    nearest neighbours from k-d trees instead of all pairs. Groups of up to sqrt(factors) are
    handled together: each looks up more neighbours until one is in another group. When no small
    group is left, the smallest remaining group searches a tree of all points outside it. If several
    spanning trees have the same cost, the choice depends on the input only.
    """
    points = np.asarray(bias_features, float)
    group = factor_components(feature, factor, factors=len(points))
    tree = KDTree(points, leafsize=32, balanced_tree=False)
    neighbours = tree.query(points, k=range(1, min(NEIGHBOURS, tree.n) + 1))
    small = max(int(np.sqrt(len(points))), 1)
    pairs, cost = [np.zeros((0, 2), int)], [np.zeros(0)]
    while group.max(initial=0):
        sizes = np.bincount(group)
        if (sizes <= small).any():
            found = _foreign_neighbours(tree, neighbours, group, sizes <= small)
        else:
            found = _neighbour_of_all(points, group, np.argmin(sizes))
        # Shortest ways out of groups form no cycle if their lengths differ. Equal lengths can form
        # one, so `spanning_forest` checks.
        distance, point, neighbour = found
        order = np.lexsort((neighbour, point, distance))
        found = np.stack([point, neighbour], axis=1)[order]
        kept, joined = spanning_forest(group[found], len(sizes))
        pairs.append(found[kept])
        cost.append(distance[order][kept])
        group = joined[group]
    pairs = np.sort(np.concatenate(pairs), axis=1)
    return Merging(pairs, np.concatenate(cost), merge_pairs(pairs, len(points)))


def merge_pairs(pairs: np.ndarray, factors: int) -> np.ndarray:
    """[factors] new numbers, from 0 without gaps: those that a chain of pairs joins are one."""
    pairs = np.asarray(pairs, int).reshape(-1, 2)
    # A pair connects two factors just as a feature vector seen under both does.
    return factor_components(np.repeat(np.arange(len(pairs)), 2), pairs.ravel(), factors=factors)


def _foreign_neighbours(tree: KDTree, neighbours, group, chosen):
    """Distance, point and neighbour of the shortest way out of each chosen group.

    `neighbours` are distances and indices [points, k] of each point's nearest ones, itself
    included.
    """
    best = np.full(len(chosen), np.inf)
    ways = []
    open_points = np.flatnonzero(chosen[group])
    distance, index = (each[open_points] for each in neighbours)
    while True:
        foreign = group[index] != group[open_points, None]
        first = foreign.argmax(axis=1)
        rows = np.flatnonzero(foreign.any(axis=1))
        ways.append((distance[rows, first[rows]], open_points[rows], index[rows, first[rows]]))
        np.minimum.at(best, group[open_points[rows]], ways[-1][0])
        # A point whose known neighbours are all of its own group may still have a foreign one
        # nearer than its group's best.
        nearer = ~foreign.any(axis=1) & (distance[:, -1] < best[group[open_points]])
        open_points = open_points[nearer]
        if not len(open_points):
            break
        more = min(2 * index.shape[1], tree.n)
        distance, index = tree.query(tree.data[open_points], k=more)
    distance, point, neighbour = (np.concatenate(column) for column in zip(*ways, strict=True))
    order = np.lexsort((neighbour, point, distance, group[point]))
    shortest = order[np.unique(group[point[order]], return_index=True)[1]]
    return distance[shortest], point[shortest], neighbour[shortest]


def _neighbour_of_all(points, group, chosen: int):
    """The shortest way out of one group, as arrays of one."""
    own, others = np.flatnonzero(group == chosen), np.flatnonzero(group != chosen)
    tree = KDTree(points[others], leafsize=32, balanced_tree=False)
    best = (np.inf, -1, -1)
    for start in range(0, len(own), CHUNK):
        part = own[start : start + CHUNK]
        distance, index = tree.query(points[part], distance_upper_bound=best[0])
        nearest = np.argmin(distance)
        if distance[nearest] < best[0]:
            best = (distance[nearest], part[nearest], others[index[nearest]])
    return tuple(np.array([each]) for each in best)

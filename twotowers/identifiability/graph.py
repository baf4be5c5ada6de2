"""The identifiability graph of a log (Hager et al. 2025, Theorem 4.1; Chen et al. 2024, Theorem 1).

Its nodes are bias factors (positions, or position x device x ...). Its edges join factors under
which the same document, or feature vector, was seen. The bias parameters are identified up to one
constant if and only if the graph is connected. The code uses the bipartite graph between documents
and factors. It has the same components, and time is linear in the rows of the log.

Two repairs connect the graph (Chen et al. 2024, Sections 4.1 and 4.2, Algorithms 2 and 3). Node
intervention swaps documents; node merging treats bias factors as one. Both results are minimum
spanning trees of the complete graph between K components, found without computing all K^2 costs.
Line 12 of both printed algorithms records the component G_j, which was found already, so they would
not end. The code follows the text of Appendices B.2 and B.3.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from twotowers.files.distinct import number_rows
from twotowers.fitting.pair_counts import factor_components

BLOCK = 1 << 22
"""Entries of a sparse product in memory at a time."""
NEIGHBOURS = 32
"""Number of nearest neighbours kept per factor. More are looked up when needed."""

CHUNK = 1024
"""Factors of a large group whose neighbours are looked up at a time."""


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


@dataclass(frozen=True)
class Intervention:
    """Swaps that connect a log, one fewer than it has components; [swaps] each.

    `feature` is the vector to show under the bias factor `target`, in another component than
    `source`, which it was seen under; `cost` is by Eq. 3.
    """

    feature: np.ndarray
    source: np.ndarray
    target: np.ndarray
    cost: np.ndarray

    @property
    def total(self) -> float:
        """Sum of the costs."""
        return float(self.cost.sum())


def intervention_cost(relevance, examination, other_examination):
    """Variance of a swap up to a factor: 1 / (r o) + 1 / (r o') - 2, of r, o, o' > 0.

    This is Eq. 3 of Chen et al. (2024), from their Proposition 1. The feature vector, of relevance
    r, was seen under a factor of examination o, and is swapped to one of examination o'.
    """
    return 1 / (relevance * examination) + 1 / (relevance * other_examination) - 2


def node_intervention(
    feature: np.ndarray, factor: np.ndarray, relevance: np.ndarray, examination: np.ndarray
) -> Intervention:
    """The cheapest swaps that connect a log (Chen et al. 2024, Section 4.1, Algorithm 2).

    Let a = 1 / (relevance x examination) and b = 1 / relevance for the most relevant feature vector
    of a factor, and u = 1 / examination for the most examined factor of another component. The swap
    from the one to the other costs a + b u - 2. This grows with u, so the cheapest way out of a
    component leads to R, the component with the lowest u. So the cheapest edge at a component B
    other than R is the cheaper of two: B's best swap to R, and the best swap of any component to B.
    These edges make a tree, because the cost of a swap to R strictly falls along edges of the
    second kind. No spanning tree is cheaper: in a tree rooted at R, the edge from B to its parent
    is an edge at B. Time grows with components times factors, instead of with factors squared.

    Features and factors are integers, [rows]; the estimates [features], [factors] are finite and >
    0.
    """
    component = factor_components(feature, factor, factors=len(examination))
    most_relevant = _most_relevant(feature, factor, relevance, len(examination))
    shown = most_relevant >= 0
    slope = np.full(len(examination), np.inf)
    slope[shown] = 1 / relevance[most_relevant[shown]]
    intercept = slope / examination

    most_examined = _lowest(-examination, component)
    reach = 1 / examination[most_examined]
    root = component[np.argmax(examination)]
    leaving = intercept + slope * reach[root]
    giver = _lowest(leaving, component)
    helper = np.array([np.argmin(intercept + slope * at) for at in reach])
    leaves = leaving[giver] <= intercept[helper] + slope[helper] * reach
    other = np.arange(len(giver)) != root
    source = np.where(leaves, giver, helper)[other]
    target = most_examined[np.where(leaves, root, np.arange(len(giver)))[other]]
    return _swaps(most_relevant[source], source, target, relevance, examination)


def random_intervention(
    feature: np.ndarray,
    factor: np.ndarray,
    relevance: np.ndarray,
    examination: np.ndarray,
    *,
    rng: np.random.Generator,
) -> Intervention:
    """Random swaps that connect a log (Chen et al. 2024, Section 5.1, "random cost").

    The swaps are the cheapest tree for costs that are independent and uniform on [0, 1] for each
    (feature vector, source, target). Only the order of these costs matters, and all orders are
    equally likely. So swaps are drawn one after the other, and kept if they connect two components.
    About F ln F draws suffice for F factors, because each component has a factor to draw as target.
    The estimates, as of `node_intervention`, only give the costs of the swaps by Eq. 3.
    """
    component = factor_components(feature, factor, factors=len(examination))
    # Repeated rows of the log do not make further swaps.
    factors = len(examination)
    feature, factor = np.divmod(np.unique(feature.astype(np.int64) * factors + factor), factors)
    rows, targets = [np.zeros(0, int)], [np.zeros(0, int)]
    while component.max() > 0:
        row, target = rng.integers(len(factor), size=factors), rng.integers(factors, size=factors)
        ends = np.stack([component[factor[row]], component[target]], axis=1)
        kept, joined = spanning_forest(ends, component.max() + 1)
        rows.append(row[kept])
        targets.append(target[kept])
        component = joined[component]
    rows = np.concatenate(rows)
    return _swaps(feature[rows], factor[rows], np.concatenate(targets), relevance, examination)


def _most_relevant(feature, factor, relevance, factors: int) -> np.ndarray:
    """[factors] the most relevant feature vector seen under each factor, -1 for none."""
    best = np.full(factors, -1)
    order = np.lexsort((-feature, relevance[feature]))
    best[factor[order]] = feature[order]
    return best


def _lowest(value: np.ndarray, group: np.ndarray) -> np.ndarray:
    """[groups] index of the lowest value of each group, the first among equals."""
    order = np.lexsort((value, group))
    return order[np.unique(group[order], return_index=True)[1]]


def _swaps(feature, source, target, relevance, examination) -> Intervention:
    cost = intervention_cost(relevance[feature], examination[source], examination[target])
    return Intervention(feature, source, target, cost)


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
    tree = _tree(points)
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


def _tree(points: np.ndarray):
    from scipy.spatial import KDTree  # here, because only merging needs it

    return KDTree(points, leafsize=32, balanced_tree=False)


def _foreign_neighbours(tree, neighbours, group, chosen):
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
    tree = _tree(points[others])
    best = (np.inf, -1, -1)
    for start in range(0, len(own), CHUNK):
        part = own[start : start + CHUNK]
        distance, index = tree.query(points[part], distance_upper_bound=best[0])
        nearest = np.argmin(distance)
        if distance[nearest] < best[0]:
            best = (distance[nearest], part[nearest], others[index[nearest]])
    return tuple(np.array([each]) for each in best)

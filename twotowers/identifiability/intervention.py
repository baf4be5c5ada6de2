"""Connect an identifiability graph by swapping documents: node intervention
(Chen et al. 2024, Section 4.1, Algorithm 2).

The result is a minimum spanning tree of the complete graph between K components, found without
computing all K^2 costs. Line 12 of the printed algorithm records the component G_j, which was found
already, so the algorithm would not end. The code follows the text of Appendix B.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.graph import spanning_forest


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

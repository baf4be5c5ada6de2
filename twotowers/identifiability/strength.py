"""How well a log identifies bias: the identifiability graph with weights.

The information that clicks hold on the logarithms of examination is the Laplacian of a graph
between bias factors, whose edges have as weights the clicks that tell the two apart,

    w_kl = sum over pairs d of C_d p_dk p_dl

(`twotowers.fitting.conditional`: pair d has C_d clicks, and p_dk of them are expected under k).

* Its rank is the number of factors less the number of components. So bias is identified up to one
  constant if and only if the graph is connected: Theorem 1 of Chen et al. (2024), where edges have
  no weights, is this case.
* Its second eigenvalue is 0 if the graph falls apart, and small if two halves hang together by
  little. The signs of its eigenvector are these halves (Fiedler 1973).
* The variance of the log-ratio of two factors is the resistance between them,
  R_kl = (e_k - e_l)' L+ (e_k - e_l). An edge with w_kl R_kl = 1 is a bridge: without it the log
  falls apart.
* A pair that is shown once under k and once under l adds r o_k o_l / (o_k + o_l) to w_kl, where r
  is its attraction and o is examination. The inverse, 1 / (r o_k) + 1 / (r o_l), is the cost of a
  swap by Eq. 3 of Chen et al. (2024), but for its constant -2: clicks here are Poisson. A document
  that the log has shown under k before, m times as often as the swap does, adds more:
  r (1 + m) o_k o_l / ((1 + m) o_k + o_l), up to r o_l.

    >>> import numpy as np
    >>> weights = np.array([[0, 50, 0], [50, 0, 2], [0, 2, 0]])
    >>> found = strength(np.diag(weights.sum(0)) - weights)
    >>> found.components, found.halves.tolist()
    (1, [0, 0, 1])
    >>> found.links[["one", "other", "error", "share"]].round(3).values.tolist()
    [[1.0, 2.0, 0.707, 1.0], [0.0, 1.0, 0.141, 1.0]]
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from twotowers.fitting.conditional import optimum, product_moments
from twotowers.fitting.curves import ENOUGH_SWAPS, Curve, contrasts, number_of
from twotowers.fitting.pair_counts import PairCounts, strong_components

LEAST = 0.05
"""The smallest 2 - growth that `times_needed` takes: with a smaller one it would never end."""


@dataclass(frozen=True)
class Strength:
    """How well the factors of a log hang together.

    Attributes:
        component: [K] number of each factor's component, from 0.
        halves: [K] 0 or 1: the two parts that are tied the least. By component if the log falls
            apart: the first against the others.
        between: error of the difference between the means of the two halves' log-examinations;
            inf if the log falls apart.
        resistance: [K, K] variance of each log-ratio; inf between components.
        links: a row per edge, weakest first: factor numbers one and other, clicks (the weight),
            error of the log-ratio between the two, swaps (4 / variance), and share: the part of
            what is known of this ratio that comes from the edge itself; 1 for a bridge.
    """

    component: np.ndarray
    halves: np.ndarray
    between: float
    resistance: np.ndarray
    links: pd.DataFrame

    @property
    def information(self) -> np.ndarray:
        """[K, K] the Laplacian."""
        weight = np.zeros(self.resistance.shape)
        weight[self.links["one"], self.links["other"]] = self.links["clicks"]
        weight += weight.T
        return np.diag(weight.sum(0)) - weight

    @property
    def swaps(self) -> float:
        """Effective number of swaps that tie the two halves; 0 if the log falls apart."""
        return 4 / self.between**2

    @property
    def components(self) -> int:
        """Their number."""
        return int(self.component.max(initial=-1)) + 1


def strength(information: np.ndarray) -> Strength:
    """The strength of a log, from the information of its curve, a Laplacian [K, K]."""
    laplacian = np.asarray(information, float)
    off = ~np.eye(len(laplacian), dtype=bool)
    scale = max(np.abs(laplacian).max(initial=0), 1e-300)
    # Sums that cancel leave rounding errors, which are no edges.
    weight = np.where(off & (-laplacian > 1e-12 * scale), -laplacian, 0)
    component = connected_components(weight, directed=False)[1]
    _, vector = np.linalg.eigh(laplacian)
    together = component.max(initial=0) == 0
    # The largest half comes first.
    side = vector[:, 1] > 0 if together and len(laplacian) > 1 else component > 0
    halves = (side != (side.sum() * 2 > len(side))).astype(int)
    inverse = np.linalg.pinv(laplacian, rcond=1e-12, hermitian=True)
    resistance = np.diag(inverse)[:, None] + np.diag(inverse) - 2 * inverse
    resistance[component[:, None] != component] = np.inf
    between = np.inf
    if together and halves.any():
        difference = halves / halves.sum() - (1 - halves) / (1 - halves).sum()
        between = float(np.sqrt(difference @ inverse @ difference))
    one, other = np.nonzero(np.triu(weight))
    links = pd.DataFrame({"one": one, "other": other, "clicks": weight[one, other]})
    links["error"] = np.sqrt(resistance[one, other])
    links["swaps"] = 4 / resistance[one, other]
    links["share"] = np.minimum(links["clicks"] * resistance[one, other], 1)
    links = links.sort_values("error", ascending=False, kind="stable", ignore_index=True)
    return Strength(component, halves, between, resistance, links)


def weakest_link(found: Strength, name: Callable[[int], str]) -> str:
    """The weakest link in words, if there is one between factors, which `name` names by number.

    Example:
        >>> weights = np.array([[0, 50, 0], [50, 0, 2], [0, 2, 0]])
        >>> found = strength(np.diag(weights.sum(0)) - weights)
        >>> weakest_link(found, lambda number: f"position={number + 1}")
        'the weakest link is between position=2 and position=3: error of the log-ratio 0.71, \
8 effective swaps, fewer than 20; nothing else ties the two'
    """
    link = found.links.iloc[0]
    where = "within a part, the" if found.components > 1 else "the"
    few = f", fewer than {ENOUGH_SWAPS:g}" if link["swaps"] < ENOUGH_SWAPS else ""
    bridge = "; nothing else ties the two" if link["share"] > 0.999 else ""
    return (
        f"{where} weakest link is between {name(int(link['one']))} and {name(int(link['other']))}: "
        f"error of the log-ratio {link['error']:.2g}, {number_of(link['swaps'])} effective swaps"
        f"{few}{bridge}"
    )


def strength_of_log(counts: PairCounts) -> Strength:
    """The strength of a whole log, all components included.

    A curve holds what is tied to its reference. Here every component has estimates of its own, at
    which its information is taken. Factors that clicks order one way only
    (`twotowers.fitting.conditional`) are components of their own.
    """
    useful = counts.where()
    # A pair that was shown in two components is a pair of each.
    part = strong_components(useful)[useful.factor]
    useful = PairCounts.of_arrays(
        useful.pair * counts.factors + part,
        useful.factor,
        useful.impressions,
        useful.clicks,
        factors=counts.factors,
    ).where()
    _, moments = optimum(useful, product_moments, np.zeros(useful.factors))
    return strength(moments.information)


def growth_of(counts: PairCounts, curve: Curve) -> np.ndarray:
    """[K] the power of the sessions by which information on each log-ratio grows, from 1 to 2.

    A document that is shown once tells nothing, and twice as many sessions show it at two places.
    So information grows as the square of sessions while documents are seen at most a few times, and
    in proportion once they are seen often. The impressions are divided at random into halves. The
    power is log2 of what all tell over the mean of what each half tells, at the curve's estimates.
    The same counts are always divided alike.
    """
    known = curve.estimate > 0
    theta = np.log(np.where(known, curve.estimate, 1))
    useful = counts.where(known[counts.factor])
    halves = [
        PairCounts.of_arrays(useful.pair, useful.factor, *part, factors=counts.factors).where()
        for part in useful.halved(np.random.default_rng(0))
    ]
    whole, one, other = (product_moments(each, theta).information for each in (useful, *halves))
    variances = (strength(each).resistance[curve.reference] for each in ((one + other) / 2, whole))
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log2(np.divide(*variances))
    return np.clip(np.nan_to_num(power, nan=1.0), 1, 2)


def times_needed(curve: Curve, error: float, growth: np.ndarray | float) -> np.ndarray:
    """[K] how many times this log would know each log-ratio to an error such as .1.

    What t times a log tells of a log-ratio is taken to be t^2 (1 + s) / (t + s) times as much: it
    grows by the power `growth` now (`growth_of`; 1 where documents are all seen often), and in
    proportion in the end, with s = 1 / (2 - growth) - 1. It is inf where this log tells nothing,
    however long, and 0 at the reference.
    """
    ratio = np.where(np.isfinite(curve.error), (curve.error / error) ** 2, np.inf)
    later = 1 / np.maximum(2 - growth, LEAST) - 1
    with np.errstate(invalid="ignore"):
        times = ratio + np.sqrt(ratio**2 + 4 * (1 + later) * later * ratio)
    return np.where(np.isinf(ratio), np.inf, times / (2 * (1 + later)))


def best_swaps(
    information: np.ndarray,
    examination: np.ndarray,
    attraction: float | np.ndarray,
    *,
    pages: float,
    steps: int = 10,
    before: float | np.ndarray = 0,
    reference: int = 0,
) -> pd.DataFrame:
    """Swaps to run, each the one that lowers the errors most after those before it.

    A swap of factors k and l shows a list as it is on `pages` pages, and on as many pages with the
    two documents of k and l exchanged. Each of both documents then adds pages r o_k o_l / (o_k +
    o_l) to w_kl, if the log does not know it yet. While the log falls apart, the swap that adds
    most between two components comes first. After that, each step lowers the sum of the variances
    of all log-ratios to the reference most, by

        W |S Q b|^2 / (1 + W b' Q b),    b = e_k - e_l,

    where Q is the inverse of the information so far, W what the swap adds, and S subtracts the
    reference. A row has one and other (factors), clicks (added to w_kl), joins (whether it connects
    two components), worst and mean: errors of the log-ratios afterwards, inf while the log falls
    apart.

    Args:
        information: [K, K] Laplacian so far.
        examination: [K] estimates o, > 0, up to one scale. A factor without estimate needs a guess.
        attraction: r of the swapped documents, in that scale: r o is a click rate. One number, or
            [K] those of what is usually shown under each factor.
        before: how many times as often as such a swap the log has shown a document where it is: a
            number, or [K] by factor; 0 for new documents.
    """
    laplacian = np.array(information, float)
    factors = len(laplacian)
    examination = np.asarray(examination, float)
    attraction = np.broadcast_to(np.asarray(attraction, float), (factors,))
    known = ((1 + np.broadcast_to(before, (factors,))) * examination)[:, None]
    add = pages * attraction[:, None] * known * examination / (known + examination)
    add += add.T
    np.fill_diagonal(add, 0)
    subtract = contrasts(factors, reference)
    rows = []
    for _ in range(steps if factors > 1 else 0):
        component = connected_components(np.abs(laplacian) > 0, directed=False)[1]
        apart = component[:, None] != component
        if apart.any():
            gain = np.where(apart, add, 0)
        else:
            inverse = np.linalg.pinv(laplacian, hermitian=True)
            moved = subtract @ inverse
            length = (moved**2).sum(0)
            spread = length[:, None] + length - 2 * moved.T @ moved
            own = np.diag(inverse)
            gain = add * spread / (1 + add * (own[:, None] + own - 2 * inverse))
        one, other = np.unravel_index(np.argmax(np.triu(gain)), gain.shape)
        swap = np.zeros(factors)
        swap[one], swap[other] = 1, -1
        laplacian += add[one, other] * np.outer(swap, swap)
        error = _errors(laplacian, subtract)
        rows.append(
            {
                "one": int(one),
                "other": int(other),
                "clicks": add[one, other],
                "joins": bool(apart[one, other]),
                "worst": error.max(),
                "mean": error.mean(),
            }
        )
    return pd.DataFrame(rows, columns=["one", "other", "clicks", "joins", "worst", "mean"])


def _errors(laplacian: np.ndarray, subtract: np.ndarray) -> np.ndarray:
    """[K - 1] errors of the log-ratios to the reference; inf if the graph falls apart."""
    reference = np.flatnonzero(~subtract.any(1))[0]
    others = np.arange(len(laplacian)) != reference
    if connected_components(np.abs(laplacian) > 0, directed=False)[0] > 1:
        return np.full(len(laplacian) - 1, np.inf)
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    return np.sqrt(np.diag(subtract @ inverse @ subtract.T)[others])

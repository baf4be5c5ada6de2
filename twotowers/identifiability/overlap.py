"""Do documents at neighbouring positions have features in common? Theorem 4.1, with numbers.

Without swaps a two-tower model tells bias from relevance only where the supports of features at two
positions overlap (Hager et al. 2025, Theorem 4.1). Two parameterisations with the same click
probabilities may then differ between the positions by at most (Eq. 14)

    |D_k - D_k'| <= 2 L |x_1 - x_2|,

where L is a Lipschitz constant of both towers, and x_1, x_2 are documents at k and k'. The bound is
the smallest for the nearest two documents, and 0 if one document was shown at both positions.

How far apart the distributions are says a two-sample test (Lopez-Paz and Oquab 2017): the AUC of a
classifier that guesses the position from features, on queries that it was not fitted to. .5 means
that it cannot; 1 that positions have nothing in common but what the tower's shape extrapolates. One
half of the queries fits the classifier and the other half judges it: classifiers of several folds
would share queries, and so have chance in common that an interval does not know.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> factor = np.tile([0, 1], 1000)
    >>> x[factor == 1, 0] += 1
    >>> log = FeatureCounts.of_arrays(
    ...     np.arange(2000) // 2, np.arange(2000), factor, np.ones(2000), np.zeros(2000), x)
    >>> found = overlap(log, slope=1.0)
    >>> found.auc.round(2).tolist()  # in truth Phi(1 / sqrt 2) = .76
    [0.77]
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from twotowers.fitting.curves import effective_clusters
from twotowers.fitting.feature_towers import fit_tower
from twotowers.fitting.pair_counts import FeatureCounts, PairCounts
from twotowers.intervals import interval

NUMBERS = "auc", "low", "high", "distance", "bound"
MOST = 3_000
"""Documents of each position whose distances are computed."""


def folds_of(queries: int, folds: int, rng: np.random.Generator) -> np.ndarray:
    """[queries] fold of each query, at random, of sizes that differ by at most one."""
    return rng.permutation(np.arange(queries) % folds)


def overlap(
    log: FeatureCounts, *, slope: float | None = None, rng: np.random.Generator | None = None
) -> pd.DataFrame:
    """Overlap of features between each position and the next.

    Args:
        log: counts and features; clicks do not matter.
        slope: L, such as `Tower.slope`, per standard deviation of the features; without it there is
            no bound.
        rng: divides queries into halves; by default of seed 0.

    Returns:
        A row per pair of factors: one, other, auc with low and high, distance (of the nearest
        two documents, in standard deviations), bound (of Eq. 14, in log-odds or logarithms). NaN
        where it is not known: a half of the queries has one of both positions only.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    counts = log.counts
    learns = folds_of(len(counts.query), 2, rng)[log.cluster] == 1
    rows = []
    for one in range(counts.factors - 1):
        chosen = (counts.factor == one) | (counts.factor == one + 1)
        second = counts.factor == one + 1
        found = {"one": one, "other": one + 1} | dict.fromkeys(NUMBERS, np.nan)
        rows.append(found)
        if all((chosen & kind).any() for kind in (second, ~second)):
            near = _nearest(log, counts.pair[chosen], second[chosen], rng)
            found |= {"distance": near, "bound": np.nan if slope is None else 2 * slope * near}
        halves = [chosen & half for half in (learns, ~learns)]
        if not all((half & kind).any() for half in halves for kind in (second, ~second)):
            continue
        judged = halves[1]
        guess = _guesses(log, *halves, second)
        weight, cluster = counts.impressions[judged], log.cluster[judged]
        auc, error, freedom = clustered_auc(guess, second[judged], weight, cluster)
        low, high = np.clip(interval(auc, error, freedom), 0, 1)
        found |= {"auc": auc, "low": low, "high": high}
    return pd.DataFrame(rows, columns=["one", "other", *NUMBERS])


def _guesses(
    log: FeatureCounts, learnt: np.ndarray, judged: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Log-odds of the second position of the rows `judged`, by a logistic regression on others."""
    counts = log.counts
    pair, shown = counts.pair[learnt], counts.impressions[learnt]
    number, place = np.unique(pair, return_inverse=True)
    sample = PairCounts.of_arrays(
        place, place * 0, shown, shown * second[learnt], query=counts.cluster[pair], every=True
    )
    fitted = fit_tower(FeatureCounts(sample, log.features[number]), "linear", errors=False)
    return fitted.bias[0] + fitted.predict(log.features[counts.pair[judged]])


def _nearest(log: FeatureCounts, pair: np.ndarray, second: np.ndarray, rng) -> float:
    """The smallest distance of a document at the one position from one at the other."""
    one, other = (np.unique(pair[kind]) for kind in (~second, second))
    if np.isin(one, other).any():
        return 0.0
    one, other = (rng.permutation(each)[:MOST] for each in (one, other))
    return float(cdist(log.features[one], log.features[other]).min())


def clustered_auc(
    guess: np.ndarray, second: np.ndarray, weight: np.ndarray, cluster: np.ndarray
) -> tuple[float, float, float]:
    """The AUC of guesses, its error clustered by query (Obuchowski 1997), and degrees of freedom.

    Args:
        guess: [rows] higher for the second kind.
        second: [rows] bool.
        weight: [rows] impressions.
        cluster: [rows] from 0.

    Example:
        >>> guess, second = np.array([1.0, 2, 2, 3]), np.array([False, False, True, True])
        >>> clustered_auc(guess, second, np.ones(4), np.array([0, 1, 0, 1]))[0]
        0.875
    """
    order, place = np.unique(guess, return_inverse=True)
    mass = np.stack([np.bincount(place, weight * kind, len(order)) for kind in (~second, second)])
    mass /= mass.sum(1, keepdims=True)
    below = np.cumsum(mass, 1) - mass / 2
    beaten = np.where(second, below[0][place], 1 - below[1][place])
    auc = float(mass[1] @ below[0])
    share = weight / np.where(second, weight[second].sum(), weight[~second].sum())
    steps = np.bincount(cluster, share * (beaten - auc))
    return auc, float(np.sqrt((steps**2).sum())), float(effective_clusters(steps))

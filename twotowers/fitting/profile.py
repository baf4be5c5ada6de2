"""Odds of examination with a parameter per pair: the profile likelihood, and its bias corrected.

The additive form P(click) = sigmoid(gamma_d + theta_k) with gamma_d at its optimum is what a fit
with an embedding per pair maximises (`twotowers.fitting.newton`). Where pairs are seen a few times
theta is biased away from 0: twice as large if each pair is seen once under each of two factors
(Andersen 1973). The split-panel jackknife (Dhaene and Jochmans 2015) divides the impressions of
each cell at random into halves and extrapolates,

    theta = 2 theta(all) - (theta(one half) + theta(other half)) / 2,

which removes a bias in proportion to 1 / impressions. The exact conditional logit
(`twotowers.fitting.conditional`, form 'additive') has none. Both are here to be compared with it.
In the product form with Poisson clicks profile and conditional likelihood are the same.

    >>> pair, factor = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    >>> clicks = np.tile([1, 0, 0, 1, 1, 0, 0, 0, 1, 1], 40)  # odds 1/2 given one click of two
    >>> counts = PairCounts.of_arrays(pair, factor, np.ones(400), clicks)
    >>> fit_profile(counts).estimate.round(3).tolist()
    [1.0, 0.25]
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from twotowers.errors import InputError
from twotowers.fitting.conditional import APART, NEVER, ORDERED, UNCLICKED, unsure
from twotowers.fitting.curves import Blocks, Curve, as_curve, contrasts, inverse_root, sandwich
from twotowers.fitting.newton import fit_embedding
from twotowers.fitting.pair_counts import PairCounts, components, strong_components


def fit_profile(
    counts: PairCounts,
    *,
    splits: int = 0,
    rng: np.random.Generator | None = None,
    reference: int = 0,
    level: float = 0.95,
) -> Curve:
    """Odds relative to the reference, with a parameter per pair.

    Args:
        counts: impressions, whole numbers, and clicks by pair and bias factor.
        splits: random divisions into halves whose mean corrects the bias; 0 for none.
        rng: source of their randomness.
        reference: number of the factor that has odds 1.
        level: of the intervals. Errors are those of the uncorrected fit, clustered by query.

    Raises:
        InputError: splits without a source of randomness.
    """
    if splits and rng is None:
        raise InputError("is missing", field="rng", expected="a generator, to divide the log")
    factors = counts.factors
    told = counts.where()
    told = told.where(unsure(told))
    theta = _theta(told, reference)
    corrections = []
    for _ in range(splits):
        halves = _theta_of_halves(told, reference, rng)
        corrections.append(theta - (halves[0] + halves[1]) / 2)
    found = theta + np.mean(corrections, 0) if splits else theta
    reason = np.full(factors, "", object)
    reason[~np.isfinite(found)] = ORDERED
    clicked = components(told.pair, told.factor, factors)
    reason[clicked != clicked[reference]] = UNCLICKED
    reason[counts.component != counts.component[reference]] = APART
    reason[counts.shown == 0] = NEVER
    reason[reference] = ""
    inside = told.where(np.isfinite(theta)[told.factor])
    inside = inside.where(unsure(inside))
    blocks, scores = _pieces(inside, np.nan_to_num(theta))
    root = inverse_root(blocks.laplacian(), None)
    subtract = contrasts(factors, reference)
    covariance = sandwich(blocks, scores, root, "CR1", bread=root)
    return as_curve(
        counts.names,
        found,
        subtract @ covariance @ subtract.T,
        information=blocks.laplacian(),
        resistance=((subtract @ root) ** 2).sum(1),
        queries=blocks.effective(root @ (subtract @ root).T),
        reason=reason,
        reference=reference,
        level=level,
    )


def _dense(told: PairCounts) -> tuple[np.ndarray, np.ndarray]:
    shown, clicks = np.zeros((2, len(told.cluster), told.factors))
    shown[told.pair, told.factor] = told.impressions
    clicks[told.pair, told.factor] = told.clicks
    return shown, clicks


def _theta(told: PairCounts, reference: int) -> np.ndarray:
    """[K] log-odds relative to the reference; NaN where they are not finite."""
    together = strong_components(told, "additive")
    inside = together == together[reference]
    told = told.where(inside[told.factor])
    told = told.where(unsure(told))
    theta = np.full(told.factors, np.nan)
    theta[reference] = 0
    if len(told.pair):
        bias = fit_embedding(*_dense(told)).bias
        theta[inside] = (bias - bias[reference])[inside]
    return theta


def _theta_of_halves(told: PairCounts, reference: int, rng) -> list[np.ndarray]:
    shown, clicked = (each.astype(int) for each in (told.impressions, told.clicks))
    half = shown // 2 + (shown % 2) * rng.integers(2, size=len(shown))
    hits = rng.hypergeometric(clicked, shown - clicked, half)
    parts = (half, hits), (shown - half, clicked - hits)
    return [
        _theta(
            PairCounts.of_arrays(told.pair, told.factor, n, c, factors=told.factors).where(),
            reference,
        )
        for n, c in parts
    ]


def _pieces(told: PairCounts, theta: np.ndarray) -> tuple[Blocks, csr_array]:
    """Information and scores of each query, with every pair's parameter at its optimum."""
    if not len(told.pair):
        empty = csr_array((0, told.factors))
        return Blocks(empty, np.zeros(0, int)), empty
    shown, clicks = _dense(told)
    fitted = fit_embedding(shown, clicks, start=theta).probability
    chance = fitted[told.pair, told.factor]
    bounds = np.append(told.starts, len(told.pair))
    weight = csr_array(
        (told.impressions * chance * (1 - chance), told.factor, bounds),
        shape=(len(told.cluster), told.factors),
    )
    blocks = Blocks(weight, told.cluster)
    residual = told.clicks - told.impressions * chance
    scores = coo_array(
        (residual, (told.cluster[told.pair], told.factor)), shape=(blocks.clusters, told.factors)
    )
    return blocks, scores.tocsr()

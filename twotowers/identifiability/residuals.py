"""What a two-tower model leaves: do its residuals go with the policy's score?

Lemma 5.2 of Hager et al. (2025): a misspecified model's bias depends on the policy if its
residuals correlate with what the policy places where. Both tests compare observed with expected
clicks, within each position.

* **Residual and score**: the covariance of residual and score s within a position, over all
  impressions, (1 / N) sum e_i (s_i - mean of s at the position).
* **Calibration**: observed over expected clicks in cells of position and tenth of score.

A fitted model's residuals are not independent of its features: the fit made some of their sums 0.
So the tests use scores that are orthogonal to what the tower can express (Neyman 1959;
`Tower.beyond`), summed by query. A score that the tower can express, but for a share of its
variance below `EXPRESSED`, cannot go with its residuals and has no test. What is left of it then
is what a deep tower's tangent misses, of second order in the errors of its weights.

    >>> from twotowers.fitting.feature_towers import fit_tower
    >>> rng = np.random.default_rng(0)
    >>> hidden, x = rng.normal(size=4000), rng.normal(size=(4000, 1))
    >>> factor = np.argsort(np.argsort(-hidden.reshape(-1, 4), 1), 1).ravel()
    >>> chance = 1 / (1 + np.exp(1 + factor - x[:, 0] - hidden))
    >>> log = FeatureCounts.of_arrays(
    ...     np.arange(4000) // 4, np.arange(4000), factor, np.full(4000, 20),
    ...     rng.binomial(20, chance), x, score=hidden)
    >>> found = residual_and_score(log, fit_tower(log, "linear"))
    >>> found.value > 0, found.p < 1e-6
    (True, True)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from twotowers.fitting.curves import effective_clusters
from twotowers.fitting.feature_towers import Tower
from twotowers.fitting.pair_counts import FeatureCounts
from twotowers.identifiability.testing import Finding, many, single
from twotowers.intervals import interval

PARTS = 10
"""Parts of the score within a position, of as many impressions each."""
FEWEST = 5
"""Expected clicks of a cell."""
EXPRESSED = 0.005
"""Share of a score's variance that a right deep tower may leave, by the errors of its own fit."""
NO_SCORE = "the policy's score is the same for all documents of a position"
KNOWN = "the tower can express the policy's score"


def within(log: FeatureCounts, score: np.ndarray) -> np.ndarray:
    """[rows] score less its mean at the row's position, in standard deviations within positions."""
    counts = log.counts
    total = np.bincount(counts.factor, counts.impressions, counts.factors)
    mean = np.bincount(counts.factor, counts.impressions * score, counts.factors)
    left = score - (mean / np.maximum(total, 1e-300))[counts.factor]
    spread = np.sqrt(counts.impressions @ left**2 / counts.impressions.sum())
    scale = np.abs(score).max(initial=0)
    return left / spread if spread > 1e-9 * scale else np.zeros(len(left))


def score_of(log: FeatureCounts) -> np.ndarray:
    """[rows] the policy's score; without one, minus the mean factor of the row's pair."""
    return log.mean_rank() if log.score is None else log.score


def residual_and_score(log: FeatureCounts, tower: Tower) -> Finding:
    """Test that residuals and the policy's score have covariance 0 within positions.

    Args:
        log: that of the fit. Without scores, minus a pair's mean position stands for them.
        tower: with jackknifed residuals.

    Returns:
        The value is the weight that the score would get beside the tower, one Newton step from 0:
        log-odds (or the logarithm) of clicks per standard deviation of the score. It has the sign
        of the covariance: above 0 if what the policy prefers is clicked more than expected.
    """
    name, unit = "residual and score", "log-odds per standard deviation"
    score = within(log, score_of(log))
    if not score.any():
        return Finding(name, unit=unit, reason=NO_SCORE)
    left = tower.beyond(log, score)
    information = float(tower.weight @ left**2)
    if information < EXPRESSED * float(tower.weight @ score**2):
        return Finding(name, unit=unit, reason=KNOWN)
    steps = _by_query(log, tower.jackknifed * left) / information
    return single(name, steps, tower.residual @ left / information, unit)


def calibration(log: FeatureCounts, tower: Tower) -> tuple[Finding, pd.DataFrame]:
    """Observed over expected clicks by position and tenth of the policy's score.

    Args:
        log: that of the fit. Without scores, minus a pair's mean position stands for them.
        tower: with jackknifed residuals.

    Returns:
        The test that all ratios are 1, over cells with `FEWEST` expected clicks or more; its value
        is the root of the mean square of the ratios' distances from 1. And a row per cell: factor,
        part (from 0, of the lowest scores), impressions, expected, observed, ratio, low and high,
        by Student's t over queries.
    """
    name, unit = "calibration", "distance from 1"
    counts = log.counts
    score = within(log, score_of(log))
    if not score.any():
        return Finding(name, unit=unit, reason=NO_SCORE), pd.DataFrame()
    part = _parts(counts.factor, score, counts.impressions)
    cell = counts.factor * PARTS + part
    cells = counts.factors * PARTS
    shown, expected, observed = (
        np.bincount(cell, each * tower.fitted, cells)
        for each in (counts.impressions, tower.expected, counts.clicks)
    )
    enough = np.flatnonzero(expected >= FEWEST)
    columns = (tower.beyond(log, (cell == each).astype(float)) for each in enough)
    steps = np.stack([_by_query(log, tower.jackknifed * each) for each in columns], 1)
    found = many(name, steps)
    ratio = observed[enough] / expected[enough]
    error = np.sqrt((steps**2).sum(0)) / expected[enough]
    low, high = interval(ratio, error, effective_clusters(steps))
    found = replace(found, value=float(np.sqrt(np.mean((ratio - 1) ** 2))), unit=unit)
    table = pd.DataFrame(
        {
            "factor": enough // PARTS,
            "part": enough % PARTS,
            "impressions": shown[enough],
            "expected": expected[enough],
            "observed": observed[enough],
            "ratio": ratio,
            "low": np.maximum(low, 0),
            "high": high,
        }
    )
    return found, table


def _by_query(log: FeatureCounts, values: np.ndarray) -> np.ndarray:
    """[queries] sums of [rows]."""
    return np.bincount(log.cluster, values, len(log.counts.query))


def _parts(factor: np.ndarray, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[rows] which tenth of its factor's impressions a row is in, by score; ties stay together."""
    order = np.lexsort((score, factor))
    below = np.cumsum(weight[order]) - weight[order]
    start = np.flatnonzero(np.diff(factor[order], prepend=-1))
    below -= np.repeat(below[start], np.diff(start, append=len(order)))
    total = np.bincount(factor, weight)[factor[order]]
    new = (np.diff(score[order], prepend=np.nan) != 0) | (np.diff(factor[order], prepend=-1) != 0)
    share = below[np.flatnonzero(new)][np.cumsum(new) - 1] / total
    part = np.empty(len(order), int)
    part[order] = np.minimum((share * PARTS + 1e-9).astype(int), PARTS - 1)
    return part

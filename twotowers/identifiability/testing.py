"""Tests that sums over queries are 0, and the correction for several tests.

Each query adds a vector u_g [J]. Under the hypothesis the sum of all has mean 0. Its covariance is
estimated by V = sum u_g u_g', whatever the dependence within a query.

* One sum: Student's t with the effective number of queries, (sum u_g^2)^2 / sum u_g^4.
* Few sums together: Hotelling's T^2 = (sum u)' V^-1 (sum u) with nu effective queries,
  (nu - J + 1) / (nu J) T^2 ~ F(J, nu - J + 1), as Tipton and Pustejovsky (2015) approximate it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc, stdtr

from twotowers.fitting.curves import effective_clusters
from twotowers.intervals import Tested, interval


def single(steps: np.ndarray, value: float) -> Tested:
    """Test by t whether a value is 0. The squares of `steps` [queries] add up to its variance."""
    error = float(np.sqrt((steps**2).sum()))
    if not error > 0:
        return Tested(reason="no query tells of it")
    freedom = float(effective_clusters(steps))
    p = float(2 * stdtr(freedom, -abs(value / error)))
    low, high = map(float, interval(value, error, freedom))
    return Tested(float(value), error, low, high, p)


def together(steps: np.ndarray, values: np.ndarray) -> Tested:
    """The F-test that values [J] are 0, with the covariance steps' steps of [queries, J] steps."""
    value, vector = np.linalg.eigh(steps.T @ steps)
    kept = value > 1e-9 * max(value.max(initial=0), 1e-300)
    root = vector[:, kept] / np.sqrt(value[kept])
    dimension = int(kept.sum())
    if not dimension:
        return Tested(reason="no query tells of it")
    share = ((steps @ root) ** 2).sum(1)
    queries = share.sum() ** 2 / (share**2).sum()
    left = queries - dimension + 1
    if left < 2:
        reason = f"{queries:.2g} effective queries are too few for {dimension} values"
        return Tested(reason=reason)
    statistic = float(((values @ root) ** 2).sum() * left / (queries * dimension))
    return Tested(p=float(fdtrc(dimension, left, statistic)))


def holm(p: ArrayLike) -> np.ndarray:
    """p-values of several tests, corrected for their number (Holm 1979); NaN is no test.

    P(the corrected p-value of any true null hypothesis is <= alpha) <= alpha.
    """
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    left = np.isfinite(p).sum() - np.arange(len(p))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1)
    return corrected

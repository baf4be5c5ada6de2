"""Intervals by Student's t law, or by the normal law where degrees of freedom are many; and tests.

>>> [[round(float(end), 3) for end in interval(1, 0.5, freedom)] for freedom in (9, np.inf)]
[[-0.131, 2.131], [0.02, 1.98]]

Tests are of sums over queries. Each query adds a vector u_g [J]. Under the hypothesis the sum of
all has mean 0. Its covariance is estimated by V = sum u_g u_g', whatever the dependence within a
query.

* One sum: Student's t with the effective number of queries, (sum u_g^2)^2 / sum u_g^4.
* Few sums together: Hotelling's T^2 = (sum u)' V^-1 (sum u) with nu effective queries,
  (nu - J + 1) / (nu J) T^2 ~ F(J, nu - J + 1), as Tipton and Pustejovsky (2015) approximate it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc, ndtri, stdtr, stdtrit  # importing scipy.stats is slow

NORMAL_FROM = 1e6
"""Degrees of freedom from which Student's t is the normal law."""


@dataclass(frozen=True)
class Tested:
    """A number with its standard error and 95 % interval, and a test; NaN for what is not known.

    `p` is the p-value of the hypothesis, two-sided, and `reason` says why there is no test or no
    interval; '' if there is one.
    """

    value: float = np.nan
    error: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str = ""


def quantile(freedom: ArrayLike = np.inf, *, level: float = 0.95) -> np.ndarray:
    """Half of an interval of that coverage, in standard errors; NaN where the freedom is."""
    freedom, tail = np.asarray(freedom, float), (1 + level) / 2
    return np.where(freedom >= NORMAL_FROM, ndtri(tail), stdtrit(freedom, tail))


def interval(
    value: ArrayLike, error: ArrayLike, freedom: ArrayLike = np.inf, *, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end around a value with a standard error, of any shape; see `quantile`."""
    half = quantile(freedom, level=level) * np.asarray(error, float)
    return value - half, value + half


def ratio(sums: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """A ratio of sums over clusters, and its standard error if clusters are drawn at random.

    The linearised variance of a ratio, with the correction C / (C - 1) of C clusters (Cochran 1977,
    Section 6.3). Clusters of size 0 do not count. NaN stands for what is not known.

    Example:
        >>> ratio(np.array([1.0, 3.0]), np.array([1, 1]))
        (2.0, 1.0)
    """
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    if not len(sizes):
        return np.nan, np.nan
    value = float(sums.sum() / sizes.sum())
    if len(sizes) < 2:
        return value, np.nan
    spread = ((sums - value * sizes) ** 2).sum() * len(sizes) / (len(sizes) - 1)
    return value, float(np.sqrt(spread) / sizes.sum())


def effective_clusters(steps: np.ndarray) -> np.ndarray:
    """Degrees of freedom of Student's t for sums of [clusters, ...] independent steps.

    It is the effective number of clusters, (sum u^2)^2 / sum u^4: that of the clusters if their
    steps are equal in size, and 1 if one of them makes the sum. Steps that vary by chance count for
    fewer: normal ones for a third of the clusters (21 of 60). NaN if no cluster makes a step.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return (steps**2).sum(0) ** 2 / (steps**4).sum(0)


def single(steps: np.ndarray, value: float) -> Tested:
    """The t-test that a value is 0. Its variance is the sum of the squares of `steps` [queries]."""
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

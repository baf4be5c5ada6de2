"""Intervals by Student's t law, or by the normal law where degrees of freedom are many.

>>> [[round(float(end), 3) for end in interval(1, 0.5, freedom)] for freedom in (9, np.inf)]
[[-0.131, 2.131], [0.02, 1.98]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit  # importing scipy.stats is slow

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

"""Click rates whose rows are the same in every lane: lanes differ in their start only."""

from __future__ import annotations

import numpy as np

from twotowers.fitting.click_rates import ClickRates


def same_rows(
    feature: np.ndarray,
    factor: np.ndarray,
    rate: np.ndarray,
    *,
    features: int,
    factors: int,
    lanes: int = 1,
) -> ClickRates:
    """Rows of equal weight.

    Args:
        feature, factor, rate: [rows] as of one lane of `ClickRates`.
        features, factors: their numbers.
        lanes: number of lanes.

    Example:
        >>> rates = same_rows(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.5, 0.2]),
        ...     features=2, factors=1, lanes=3)
        >>> rates.rate.shape, rates.weight.min().item()
        ((3, 2), 1.0)
    """
    return ClickRates(
        feature=feature,
        factor=np.tile(factor, (lanes, 1)),
        rate=np.tile(rate, (lanes, 1)),
        weight=np.ones((lanes, len(feature)), np.float32),
        features=features,
        factors=factors,
    )

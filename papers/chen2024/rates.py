"""Click rates of one lane whose rows weigh the same."""

from __future__ import annotations

import numpy as np

from twotowers.fitting.click_rates import ClickRates


def same_rows(
    feature: np.ndarray, factor: np.ndarray, rate: np.ndarray, *, features: int, factors: int
) -> ClickRates:
    """Rows of equal weight.

    Args:
        feature, factor, rate: [rows] as of one lane of `ClickRates`.
        features, factors: their numbers.

    Example:
        >>> rates = same_rows(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.5, 0.2]),
        ...     features=2, factors=1)
        >>> rates.rate.shape, rates.weight.min().item()
        ((1, 2), 1.0)
    """
    return ClickRates(
        feature=feature,
        factor=factor[None],
        rate=rate[None],
        weight=np.ones((1, len(feature)), np.float32),
        features=features,
        factors=factors,
    )

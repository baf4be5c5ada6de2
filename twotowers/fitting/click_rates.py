"""Click rates of documents at places of lists, and what a fit of them finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ClickRates:
    """Click rates of the rows of some lanes.

    Attributes:
        feature: [rows] integers in [0, features), the feature vector of each row.
        factor: [lanes, rows] integers in [0, factors), the bias factor of each row.
        rate: [lanes, rows] clicks per impression, in [0, 1].
        weight: [lanes, rows] weight in the fit, >= 0; 0 where a lane lacks the row.
    """

    feature: np.ndarray
    factor: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    features: int
    factors: int


@dataclass(frozen=True)
class RateEstimate:
    """The fitted values of each lane.

    Attributes:
        relevance: [lanes, features] float in [0, 1]. Meaningless for features without weight.
        examination: [lanes, factors] float in [0, 1]. Factors without weight keep their start.
        steps: number of steps done; None for a fit in closed form.
    """

    relevance: np.ndarray
    examination: np.ndarray
    steps: int | None = None


def fit_naive(rates: ClickRates) -> RateEstimate:
    """Fit without debiasing: relevance is the weighted mean of click rates, examination is 1."""
    lanes = len(rates.rate)
    clicks, shown = (
        np.stack([np.bincount(rates.feature, row, rates.features) for row in rows])
        for rows in (rates.weight * rates.rate, rates.weight)
    )
    relevance = np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)
    return RateEstimate(relevance.astype(np.float32), np.ones((lanes, rates.factors), np.float32))


def click_mse(rates: ClickRates, estimate: RateEstimate) -> np.ndarray:
    """Weighted mean over rows of (r o - c)^2: [lanes] float64.

    The rates c are those that were fitted. So if the rates are sampled, the error of a good fit is
    below their variance, because the fit follows some of their noise.
    """
    fitted = estimate.relevance[:, rates.feature].astype(float) * np.take_along_axis(
        estimate.examination, np.asarray(rates.factor), 1
    )
    return (rates.weight * (fitted - rates.rate) ** 2).sum(1) / np.sum(rates.weight, 1)

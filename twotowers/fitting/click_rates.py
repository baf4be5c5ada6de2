"""Click rates of documents at places of lists, and what a fit of them finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twotowers.errors import InputError


@dataclass(frozen=True)
class ClickRates:
    """Click rates of the rows of some lanes.

    Attributes:
        feature: [rows] integers in [0, features), the feature vector of each row.
        factor: [lanes, rows] integers in [0, factors), the bias factor of each row.
        rate: [lanes, rows] clicks per impression, in [0, 1].
        weight: [lanes, rows] weight in the fit, >= 0; 0 where a lane lacks the row.
        features: number of feature vectors.
        factors: number of bias factors.
    """

    feature: np.ndarray
    factor: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    features: int
    factors: int

    def __post_init__(self):
        shape = np.shape(self.rate)
        for field in ("factor", "weight"):
            if np.shape(getattr(self, field)) != shape:
                raise InputError(
                    f"has shape {np.shape(getattr(self, field))}", field=field, expected=f"{shape}"
                )
        if len(shape) != 2 or np.shape(self.feature) != shape[1:]:
            raise InputError(
                f"has shape {np.shape(self.feature)} where rates have {shape}",
                field="feature",
                expected="[rows] for rates [lanes, rows]",
            )
        bounds = {
            "feature": (self.features - 1, f"in [0, {self.features})"),
            "factor": (self.factors - 1, f"in [0, {self.factors})"),
            "rate": (1, "in [0, 1]"),
            "weight": (np.inf, ">= 0"),
        }
        for field, (high, expected) in bounds.items():
            values = np.asarray(getattr(self, field))
            bad = values[~((values >= 0) & (values <= high))]
            if bad.size:
                raise InputError(f"{bad[0]} is out of range", field=field, expected=expected)


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


def simulate_rates(chance: np.ndarray, clicks, rng: np.random.Generator) -> np.ndarray:
    """Draw click rates of rows: Binomial(N, chance) / N.

    Args:
        chance: click probabilities in [0, 1], for example [lanes, rows].
        clicks: N >= 1, impressions per row, in a shape that broadcasts to that of `chance`.
        rng: source of randomness.

    Returns:
        float32 rates in the shape of `chance`.

    Example:
        >>> simulate_rates(np.array([0.0, 1.0]), 10, np.random.default_rng(0))
        array([0., 1.], dtype=float32)
    """
    chance, clicks = np.asarray(chance), np.asarray(clicks)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise InputError("is no probability", field="chance", expected="numbers in [0, 1]")
    if not (clicks >= 1).all():
        raise InputError(f"{clicks.min()} is out of range", field="clicks", expected=">= 1")
    return (rng.binomial(clicks, chance) / clicks).astype(np.float32)


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

"""A ranker that says 1 for every document (Example 1 of Chen et al. 2024)."""

import numpy as np

from twotowers.fitting.tiles import ClickRates
from twotowers.methods.alternation import RateEstimate, fitted_of, rates_of
from twotowers.methods.task import Fitted, Task

FACTORS = True


def fit(task: Task) -> list[Fitted]:
    """Relevance is 1, and the examination of a bias factor is the mean click rate of its rows."""
    rates = rates_of(task)
    examination = means(rates, rates.factor, rates.factors)
    relevance = np.ones((len(examination), rates.features))
    return fitted_of(task, rates, RateEstimate(relevance, examination))


def means(rates: ClickRates, number: np.ndarray, size: int) -> np.ndarray:
    """[lanes, size] weighted mean click rates of rows by their number, [lanes, rows]; 0 if none."""
    lanes = zip(number, rates.weight, rates.weight * rates.rate, strict=True)
    sums = [[np.bincount(own, values, size) for values in both] for own, *both in lanes]
    return np.stack([clicks / np.maximum(shown, np.finfo(float).tiny) for shown, clicks in sums])

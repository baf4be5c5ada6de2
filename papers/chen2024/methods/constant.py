"""A ranker that says 1 for every document (Example 1 of Chen et al. 2024)."""

import numpy as np

from twotowers.fitting.alternating import RateEstimate
from twotowers.methods.alternation import fitted_of, rates_of
from twotowers.methods.task import Fitted, Task

FACTORS = True


def fit(task: Task) -> list[Fitted]:
    """Relevance is 1, and the examination of a bias factor is the mean click rate of its rows."""
    rates = rates_of(task)
    lanes = zip(rates.factor, rates.weight, rates.rate, strict=True)
    examination = [
        np.bincount(factor, weight * rate, rates.factors)
        / np.maximum(np.bincount(factor, weight, rates.factors), np.finfo(float).tiny)
        for factor, weight, rate in lanes
    ]
    relevance = np.ones((len(examination), rates.features))
    return fitted_of(task, rates, RateEstimate(relevance, np.stack(examination)))

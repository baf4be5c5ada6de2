"""No debiasing: clicks taken for relevance."""

import numpy as np

from papers.chen2024.methods.constant import means
from twotowers.fitting.tiles import ClickRates
from twotowers.methods.alternation import RateEstimate, fitted_of, rates_of
from twotowers.methods.task import Fitted, Task

FACTORS = True


def fit(task: Task) -> list[Fitted]:
    """Relevance is the mean click rate of a document, and examination is 1."""
    rates = rates_of(task)
    return fitted_of(task, rates, fit_naive(rates))


def fit_naive(rates: ClickRates) -> RateEstimate:
    """Fit without debiasing: relevance is the weighted mean of click rates, examination is 1."""
    relevance = means(rates, np.broadcast_to(rates.feature, rates.rate.shape), rates.features)
    examination = np.ones((len(relevance), rates.factors), np.float32)
    return RateEstimate(relevance.astype(np.float32), examination)

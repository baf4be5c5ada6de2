"""No debiasing: clicks taken for relevance."""

from twotowers.fitting.click_rates import fit_naive
from twotowers.methods.alternation import fitted_of, rates_of
from twotowers.methods.task import Fitted, Task

FACTORS = True


def fit(task: Task) -> list[Fitted]:
    """Relevance is the mean click rate of a document, and examination is 1."""
    rates = rates_of(task)
    return fitted_of(task, rates, fit_naive(rates))

"""Dual learning as Chen et al. (2024) have it in their code for the fully synthetic lists.

It is not the library's method `dla` (Ai et al. 2018), which trains towers by listwise
losses. Appendix C.3 describes another update:

* Examination o is updated from the relevance r of the same step, not of the step before, and from
  r before it is clipped. So r follows from o alone, and its random start has no effect.
* o is the mean of c / r, and not the least squares solution. On the semi-synthetic data it is that
  (`twotowers.methods.alternation.LeastSquares`). There a start below the click rate is mended by
  the first step; this rule would keep it.
"""

from typing import Literal

import numpy as np
from scipy.optimize import root

from twotowers.errors import InputError
from twotowers.fitting.pair_counts import factor_components
from twotowers.fitting.tiles import ClickRates
from twotowers.methods import alternation
from twotowers.methods.alternation import RateEstimate, Rule, fitted_of, rates_of, starts_of
from twotowers.methods.task import Fitted, Task

EPSILON = 1e-8
"""What the published code adds to denominators."""
STILL = 1e-6
"""How much a step may still change a ratio of examinations where the steps are said to end."""
SMALLEST = 1e-6

FACTORS = True


class MeanRatio(Rule):
    """r = sum(c o) / sum(o^2) per feature vector, o = mean(c r / (r^2 + 1e-8)) per factor."""

    def relevance(self, cells, o):
        """Least squares, not clipped."""
        return (cells.clicks * o).sum(1) / ((cells.weight * o**2).sum(1) + EPSILON)

    def change(self, cells, o, r):
        """Sum of c / r - o."""
        return cells.clicks * (r / (r**2 + EPSILON)) - cells.weight * o


def fit(
    task: Task, *, steps: int = 20_000, until: Literal["steps", "limit"] = "steps"
) -> list[Fitted]:
    """Fit every lane's training log from a random examination, U(0, 1).

    Args:
        task: see `twotowers.methods.alternation.fit`.
        steps: 20,000 published.
        until: "limit" goes on to where the steps end, with `converge`.
    """
    if until == "steps":
        return alternation.by_rule(task, MeanRatio(), steps=steps)
    rates = rates_of(task)
    near = alternation.alternate(rates, starts_of(task, rates), MeanRatio(), steps=steps)
    return fitted_of(task, rates, converge(rates, np.maximum(near.examination, SMALLEST)))


def converge(rates: ClickRates, examination: np.ndarray) -> RateEstimate:
    """Where the steps would end on a log that is connected in every lane, found as a root.

    A step is scaled with o, so that the ratios of o to its first factor are the unknowns: at the
    end a step leaves them as they are. Powell's hybrid method finds them in a hundredth of a
    second, where some logs take far more than the published number of steps. The start is > 0 where
    a factor has weight. Examination is 1 at the first such factor; NaN in a lane where no root was
    found to 1e-6.
    """
    fitted = [
        _root(rates.feature, *lane, rates.features)
        for lane in zip(rates.factor, rates.rate, rates.weight, examination, strict=True)
    ]
    relevance, values = (np.stack(part) for part in zip(*fitted, strict=True))
    return RateEstimate(relevance, values)


def _root(feature, factor, rate, weight, start, features: int):
    """Relevance and examination of one lane."""
    used, number = np.unique(factor[weight > 0], return_inverse=True)
    feature, seen = feature[weight > 0], weight[weight > 0].astype(float)
    clicks = seen * rate[weight > 0]
    if factor_components(feature, number, factors=len(used)).any():
        raise InputError(
            "the steps have no single limit on a disconnected log",
            field="method.until",
            expected="'steps', or lanes with a repair",
        )

    def relevance(o):
        at = o[number]
        return np.bincount(feature, clicks * at, features) / (
            np.bincount(feature, seen * at**2, features) + EPSILON
        )

    def moved(logs):
        o = np.exp(np.append(0, logs))
        r = relevance(o)[feature]
        new = np.log(np.bincount(number, clicks * (r / (r**2 + EPSILON))))
        new -= np.log(np.bincount(number, seen))
        return (new - new[0])[1:] - logs

    logs = np.log(start[used].astype(float))
    end = root(moved, (logs - logs[0])[1:], tol=1e-12).x
    examination = np.full(len(start), np.nan)
    examination[used] = np.exp(np.append(0, end))
    if not np.abs(moved(end)).max(initial=0) < STILL:
        examination[:] = np.nan
    return relevance(examination[used]), examination

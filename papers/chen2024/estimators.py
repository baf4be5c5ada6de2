"""The estimators of Chen et al. (2024) on click rates (Section 5.1), as their code has them.

Appendix C.3 describes them differently. On the fully synthetic lists:

* DLA and regression EM update examination o from the relevance r of the same step, not of the
  step before, and from r before it is clipped. r therefore follows from o alone, and its random
  start has no effect.
* DLA's o is the mean of c / r, not the least squares solution. On the semi-synthetic data it is
  that, from clipped r: `twotowers.fitting.alternating.LeastSquares`. There a start below the
  click rate is mended by the first step, which `fit_dla` would keep.
* Regression EM takes c / o for the former relevance in its E-step, which then collapses: the new
  r is the mean of c / o.

    >>> import numpy as np
    >>> from twotowers.fitting.alternating import ClickRates
    >>> rates = ClickRates(
    ...     feature=np.array([0, 0]),
    ...     factor=np.array([[0, 1]]),
    ...     rate=np.array([[0.4, 0.2]]),
    ...     weight=np.ones((1, 2)),
    ...     features=1,
    ...     factors=2,
    ... )
    >>> found = fit_dla(rates, np.array([[0.9, 0.5]]), steps=200)
    >>> round(float(found.examination[0, 1] / found.examination[0, 0]), 3)
    0.5
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.optimize import root

from twotowers.fitting.alternating import (
    ClickRates,
    ExpectationMaximisation,
    Layout,
    RateEstimate,
    Rule,
    alternate,
    check_start,
    lay_out,
)

EPSILON = 1e-8
"""What the published code adds to denominators."""

LEARNING_RATE = 0.01

STILL = 1e-6
"""How much a step may still change a ratio of examinations where the steps are said to end."""


class MeanRatio(Rule):
    """r = sum(c o) / sum(o^2) per feature vector, o = mean(c r / (r^2 + 1e-8)) per factor."""

    def relevance(self, block, o, r):
        """Least squares, not clipped."""
        return (block.clicks * o).sum(1) / ((block.weight * o**2).sum(1) + EPSILON)

    def change(self, block, o, r):
        """Sum of c / r - o."""
        return block.clicks * (r / (r**2 + EPSILON)) - block.weight * o


class CollapsedEM(ExpectationMaximisation):
    """r = mean(c / o) per feature vector; o as in EM, from that r before it is clipped."""

    at_once = False

    def relevance(self, block, o, r):
        """The mean of c / (o + 1e-8), not clipped."""
        return (block.clicks / (o + EPSILON)).sum(1) / (block.weight.sum(1) + EPSILON)


def fit_dla(rates: ClickRates, examination: np.ndarray, *, steps: int) -> RateEstimate:
    """Dual learning: relevance by least squares given o, then o as the mean of c / r.

    Args:
        rates: click rates.
        examination: [lanes, factors] o to start from: U(0, 1), or ones (Appendix D.4).
        steps: 20,000 published for documents by identity, 100 for the semi-synthetic data.

    Raises:
        InputError: the start or the number of steps is out of range.
    """
    return alternate(rates, examination, MeanRatio(), steps=steps)


def converge_dla(rates: ClickRates, examination: np.ndarray) -> RateEstimate:
    """Where the steps of `fit_dla` would end on a connected log, found as a root.

    A step is scaled with o, so that the ratios of o to its first factor are the unknowns: at the
    end a step leaves them as they are. Powell's hybrid method finds them in a hundredth of a
    second, where some logs take far more than the published number of steps.

    Args:
        rates: click rates, connected in every lane.
        examination: [lanes, factors] o to start from, > 0 where a factor has weight.

    Returns:
        Examination 1 at the first factor with weight; NaN in a lane where no root was found to
        1e-6.
    """
    fitted = [
        _root(rates.feature, *lane, rates.features)
        for lane in zip(rates.factor, rates.rate, rates.weight, examination, strict=True)
    ]
    relevance, found = (np.stack(part) for part in zip(*fitted, strict=True))
    return RateEstimate(relevance, found)


def _root(feature, factor, rate, weight, start, features: int):
    """Relevance and examination of one lane."""
    used, number = np.unique(factor[weight > 0], return_inverse=True)
    feature, seen = feature[weight > 0], weight[weight > 0].astype(float)
    clicks = seen * rate[weight > 0]

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


def fit_regression_em(rates: ClickRates, examination: np.ndarray, *, steps: int) -> RateEstimate:
    """Regression EM with one parameter per feature vector and per bias factor.

    One step is r = mean(c / o) per feature vector, then o = mean(P(examined | c)) per bias
    factor, with P = c + (1 - c) o (1 - r) / (1 - o r), clipped to [0, 1].

    An o that is clipped to 1 stays there, and such a lane never fits the clicks. Starts near 0
    lead to that in the first steps, since they make r large before it is clipped: about one
    start in ten on the authors' lists of K = 2 (README.md).

    Args:
        rates: click rates.
        examination: [lanes, factors] o to start from: U(0, 1).
        steps: 20,000 in the paper, 100,000 in its code.

    Raises:
        InputError: the start or the number of steps is out of range.
    """
    return alternate(rates, examination, CollapsedEM(), steps=steps)


def fit_two_tower(rates: ClickRates, logits: np.ndarray, *, steps: int) -> RateEstimate:
    """Two towers: r and o are sigmoids, trained on cross-entropy by Adam on all rows at once.

    The loss is the mean over rows of -c ln(r o) - (1 - c) ln(1 - r o) (Appendix C.3), the
    learning rate 0.01; relevance logits start at 0.

    Args:
        rates: click rates.
        logits: [lanes, factors] logits of o to start from, N(0, 1) published.
        steps: 20,000 published.

    Raises:
        InputError: the start or the number of steps is out of range.
    """
    check_start(rates, logits, steps, low=-np.inf, high=np.inf)
    layout = lay_out(rates)
    start = jnp.asarray(logits, jnp.float32)
    relevance, examination = _descend(layout, start, jnp.int32(steps))
    relevance = layout.by_feature(relevance, rates.features)
    return RateEstimate(relevance, np.asarray(examination), steps)


@jax.jit
def _descend(layout: Layout, start: jax.Array, steps: jax.Array):
    """Adam's steps on the towers' logits."""
    optimiser = optax.adam(LEARNING_RATE)
    zeros = [jnp.zeros_like(block.clicks[:, 0]) for block in layout.blocks]

    def step(_, state):
        towers, moments = state
        updates, moments = optimiser.update(_gradient(layout, *towers), moments)
        return optax.apply_updates(towers, updates), moments

    towers = (zeros, start)
    state = towers, optimiser.init(towers)
    (relevance, examination), _ = jax.lax.fori_loop(0, steps, step, state)
    return jax.tree.map(jax.nn.sigmoid, (relevance, examination))


def _gradient(layout: Layout, relevance: list[jax.Array], examination: jax.Array):
    """Of the mean cross-entropy, with respect to the towers' logits.

    By relevance it is the sum of (r o - c) (1 - r) / (1 - r o), by examination the same with
    1 - o for 1 - r. Written out it needs no logarithm.
    """
    rows = layout.shown.sum(1)[:, None]
    examined = layout.spread(jax.nn.sigmoid(examination))
    by_relevance, by_examination = [], []
    for block, logits, o in zip(layout.blocks, relevance, examined, strict=True):
        r = jax.nn.sigmoid(logits)[:, None]
        error = (block.weight * r * o - block.clicks) / jnp.maximum(1 - r * o, EPSILON)
        by_relevance.append((error * (1 - r)).sum(1) / rows)
        by_examination.append(error * (1 - o))
    return by_relevance, layout.collect(by_examination) / rows

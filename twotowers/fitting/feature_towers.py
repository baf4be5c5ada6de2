"""Two-tower models of features, with what each query moves their estimates by.

Relevance is a function of features and bias a value per factor,

    additive form: logit P(click) = theta_k + r(x),
    product form:  ln E[clicks]   = theta_k + r(x),

fitted by the likelihood of Bernoulli or of Poisson. The tower r is linear, w x, or deep,
w x + v tanh(W x + b), where the linear term makes the linear tower a special case. Its weights have
a small normal prior, so that the optimum is finite and unique up to the hidden units' names.

The estimates of a deep tower are those of a linear one on the tangent features dr / d weights at
its optimum, to first order in the sampling error. So both towers share one Newton step and one
covariance. With the tangent features t, the design z = (1{k}, t), the residual e = c - n mu, the
variance v of a click count and A = sum v z z' + prior, query g moves the parameters by the
jackknife's step

    (A - A_g)^-1 sum over g of z e = A^-1 sum over g of z (I - H_g)^-1 e,

where H_g is its hat matrix, and the sum of the squares of these steps is their covariance,
clustered by query (CR3 of Bell and McCaffrey 2002). It needs no model of the variance.

    >>> rng = np.random.default_rng(0)
    >>> x, factor = rng.normal(size=(3000, 2)), rng.integers(3, size=3000)
    >>> chance = 1 / (1 + np.exp(factor - x @ [1, -1]))
    >>> clicks = rng.binomial(50, chance)
    >>> log = FeatureCounts.of_arrays(
    ...     np.arange(3000) // 10, np.arange(3000), factor, np.full(3000, 50), clicks, x)
    >>> tower = fit_tower(log, "linear")
    >>> (tower.bias - tower.bias[0]).round(1).tolist()
    [0.0, -1.0, -2.0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve
from scipy.optimize import minimize
from scipy.sparse import csr_array

from twotowers.errors import InputError
from twotowers.fitting.curves import LEVERAGE
from twotowers.fitting.pair_counts import FeatureCounts, PairCounts
from twotowers.fitting.tower_likelihood import (
    TowerLikelihood,
    information,
    inverse_of,
    likelihood,
    moments,
    newton,
)

HIDDEN = 8
"""Hidden units of a deep tower."""
PRIOR = {"linear": 0.01, "deep": 1.0}
"""Precision of the normal prior of each weight, of features with standard deviation 1."""
STARTS, FIRST, STEPS = 4, 60, 200
"""A deep tower has several starts, of so many steps of L-BFGS each. The best one goes on."""


@dataclass(frozen=True)
class Tower:
    """A fitted two-tower model.

    Attributes:
        kind: 'linear' or 'deep'.
        form: 'additive' or 'product'.
        bias: [K] theta; NaN for a factor that was never shown, never clicked, or always.
        relevance: [pairs] r(x).
        predict: features, as `FeatureCounts.features` -> r.
        slope: the steepest slope of r at the log's pairs, a Lipschitz constant of a linear tower.
        tangent: [pairs, P] features of the linear model that the tower is close to its optimum.
        inverse: [K + P, K + P] A^-1, with zeros at factors without a bias.
        fitted: [rows] whether the row took part.
        expected, weight: [rows] n mu, and its variance v by the model.
        residual: [rows] clicks less expected.
        jackknifed: [rows] residuals (I - H_g)^-1 e, as if the row's query had not been fitted.
    """

    kind: str
    form: str
    bias: np.ndarray
    relevance: np.ndarray
    predict: Callable[[np.ndarray], np.ndarray]
    slope: float
    tangent: np.ndarray
    inverse: np.ndarray
    fitted: np.ndarray
    expected: np.ndarray
    weight: np.ndarray
    residual: np.ndarray
    jackknifed: np.ndarray

    def scores(self, log: FeatureCounts, residual: np.ndarray) -> np.ndarray:
        """[queries, K + P] sums of z e over each query, for residuals e [rows]."""
        counts = log.counts
        queries, factors = len(counts.query), counts.factors
        by_query = np.bincount(
            log.cluster * factors + counts.factor, residual, queries * factors
        ).reshape(queries, factors)
        sums = np.bincount(counts.pair, residual, len(counts.cluster))
        gather = csr_array(
            (sums, (counts.cluster, np.arange(len(sums)))), shape=(queries, len(sums))
        )
        return np.hstack([by_query, gather @ self.tangent])

    def steps(self, log: FeatureCounts, reference: int) -> np.ndarray:
        """[queries, K] what each query moves the biases by, relative to that of the reference."""
        found = self.scores(log, self.jackknifed) @ self.inverse[:, : len(self.bias)]
        return found - found[:, [reference]]

    def beyond(self, log: FeatureCounts, column: np.ndarray) -> np.ndarray:
        """[rows] what the tower cannot express of a further column a [rows]: a - z A^-1 sum v z a.

        It is orthogonal to the tower's own columns. So the sum of e times it is what the weight of
        a would change first, and errors of the fit do not matter, to first order (Neyman 1959).
        """
        counts = log.counts
        weighted = self.weight * column
        each = np.bincount(counts.pair, weighted, len(counts.cluster))
        both = np.append(np.bincount(counts.factor, weighted, counts.factors), each @ self.tangent)
        onto = self.inverse @ both
        factors = counts.factors
        return column - onto[counts.factor] - (self.tangent @ onto[factors:])[counts.pair]


def fit_tower(
    log: FeatureCounts,
    kind: str = "deep",
    *,
    form: str = "additive",
    rng: np.random.Generator | None = None,
    rows: np.ndarray | None = None,
    errors: bool = True,
) -> Tower:
    """Fit a two-tower model whose relevance is a function of features.

    Args:
        log: counts and features.
        kind: 'linear', or 'deep' with `HIDDEN` units.
        form: 'additive' or 'product'.
        rng: draws the start of a deep tower; by default of seed 0.
        rows: [rows] bool: rows to fit; all by default.
        errors: whether to compute jackknifed residuals.
    """
    counts = log.counts
    fitted = _informative(counts, form, np.ones(len(counts.pair), bool) if rows is None else rows)
    if not fitted.any():
        raise InputError("no factor was sometimes clicked and sometimes not", field="clicks")
    n, c = counts.impressions * fitted, counts.clicks * fitted
    problem = TowerLikelihood(counts, n, c, form)
    weights = newton(problem, log.features, np.zeros(len(counts.cluster)), PRIOR["linear"])
    bias, linear = weights[: counts.factors], weights[counts.factors :]
    if kind == "linear":
        tangent, prior = log.features, PRIOR["linear"]
        slope = float(np.linalg.norm(linear))

        def predict(features):
            return features @ linear

    else:
        prior = PRIOR["deep"]
        rng = np.random.default_rng(0) if rng is None else rng
        net = _train(problem, log.features, bias, linear, rng)
        tangent = net.tangent(log.features)
        # What L-BFGS and the prior left: a step of the linear model on tangent features.
        found = newton(problem, tangent, net(log.features), prior, bias=net.bias)
        bias, step = found[: counts.factors], found[counts.factors :]
        slope = net.slope(log.features)

        def predict(features):
            return net(features) + net.tangent(features) @ step

    relevance = predict(log.features)
    expected, weight = moments(form, n, problem.logit(bias, relevance))
    inverse = inverse_of(information(problem, weight, tangent, prior))
    residual = c - expected
    jackknifed = residual
    if errors:
        jackknifed = _hat_corrected(log, fitted, weight, residual, tangent, inverse)
    fits = np.bincount(counts.factor, fitted, counts.factors) > 0
    return Tower(
        kind,
        form,
        np.where(fits, bias, np.nan),
        relevance,
        predict,
        slope,
        tangent,
        inverse,
        fitted,
        expected,
        weight,
        residual,
        jackknifed,
    )


def _informative(counts: PairCounts, form: str, rows: np.ndarray) -> np.ndarray:
    """[rows] whether the row's factor has clicks and, in the additive form, misses."""
    clicks, shown = (
        np.bincount(counts.factor, each * rows, counts.factors)
        for each in (counts.clicks, counts.impressions)
    )
    finite = (clicks > 0) & ((clicks < shown) | (form == "product"))
    return rows & finite[counts.factor]


@dataclass(frozen=True)
class _Network:
    """r(x) = w x + v tanh(W x + b)."""

    bias: np.ndarray
    linear: np.ndarray
    first: np.ndarray
    shift: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, vector: np.ndarray, factors: int, width: int) -> _Network:
        ends = np.cumsum([factors, width, width * HIDDEN, HIDDEN])
        bias, linear, first, shift, last = np.split(vector, ends)
        return cls(bias, linear, first.reshape(width, HIDDEN), shift, last)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        return features @ self.linear + np.tanh(features @ self.first + self.shift) @ self.last

    def tangent(self, features: np.ndarray) -> np.ndarray:
        """[pairs, P] derivatives of r, in the order of the weights."""
        hidden = np.tanh(features @ self.first + self.shift)
        inner = (1 - hidden**2) * self.last
        outer = (features[:, :, None] * inner[:, None]).reshape(len(features), -1)
        return np.hstack([features, outer, inner, hidden])

    def slope(self, features: np.ndarray) -> float:
        """The largest norm of dr / dx at these features."""
        inner = (1 - np.tanh(features @ self.first + self.shift) ** 2) * self.last
        return float(np.linalg.norm(self.linear + inner @ self.first.T, axis=1).max(initial=0))


def _train(problem: TowerLikelihood, features, bias, linear, rng) -> _Network:
    """A deep tower by L-BFGS, from the optimum of the linear one and hidden units at random."""
    factors, width = len(bias), features.shape[1]
    prior = PRIOR["deep"]
    scale = problem.clicks.sum()

    def loss(vector):
        net = _Network.of(vector, factors, width)
        hidden = np.tanh(features @ net.first + net.shift)
        relevance = features @ net.linear + hidden @ net.last
        logit = problem.logit(net.bias, relevance)
        expected, _ = moments(problem.form, problem.impressions, logit)
        value = likelihood(problem.form, problem.impressions, problem.clicks, logit).sum()
        by_factor, by_pair = problem.slopes(problem.clicks - expected)
        inner = (1 - hidden**2) * net.last * by_pair[:, None]
        slopes = [features.T @ by_pair, (features.T @ inner).ravel(), inner.sum(0)]
        slopes = np.concatenate([*slopes, hidden.T @ by_pair])
        weights = vector[factors:]
        slopes -= prior * weights
        value -= prior / 2 * weights @ weights
        return -value / scale, -np.append(by_factor, slopes) / scale

    def descend(start, steps):
        options = {"maxiter": steps, "maxfun": 2 * steps}
        return minimize(loss, start, jac=True, method="L-BFGS-B", options=options)

    def start():
        first = rng.normal(0, 1 / np.sqrt(max(width, 1)), width * HIDDEN)
        hidden = rng.normal(0, 0.5, HIDDEN), rng.normal(0, 0.1, HIDDEN)
        return np.concatenate([bias, linear, first, *hidden])

    begun = [descend(start(), FIRST) for _ in range(STARTS)]
    found = descend(min(begun, key=lambda each: each.fun).x, STEPS)
    return _Network.of(found.x, factors, width)


def _hat_corrected(log: FeatureCounts, fitted, weight, residual, tangent, inverse) -> np.ndarray:
    """[rows] (I - H_g)^-1 e for each query g that holds much of the information."""
    counts = log.counts
    factors = counts.factors
    found = residual.copy()
    order = np.flatnonzero(fitted & (weight > 0))
    order = order[np.argsort(log.cluster[order], kind="stable")]
    for rows in np.split(order, np.flatnonzero(np.diff(log.cluster[order])) + 1):
        design = np.zeros((len(rows), len(inverse)))
        design[np.arange(len(rows)), counts.factor[rows]] = 1
        design[:, factors:] = tangent[counts.pair[rows]]
        onto = design @ inverse
        if (onto * design).sum(1) @ weight[rows] < LEVERAGE:
            continue
        root = np.sqrt(weight[rows])
        hat = root[:, None] * (onto @ design.T) * root
        # What a query alone tells it fits exactly, so its residual is 0 there.
        left = np.eye(len(rows)) * (1 + 1e-9) - hat
        found[rows] = root * solve(left, residual[rows] / root, assume_a="pos")
    return found

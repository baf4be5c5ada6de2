"""Two-tower models of features, with what each query moves their estimates by.

Relevance is a function of features and bias a value per factor,

    logit P(click) = theta_k + r(x),

fitted by the likelihood. The tower r is linear, w x, or deep, w x + v tanh(W x + b), where the
linear term makes the linear tower a special case. Its weights have a small normal prior, so that
the optimum is finite and unique up to the hidden units' names.

The estimates of a deep tower are those of a linear one on the tangent features dr / d weights at
its optimum, to first order in the sampling error. So both towers share one Newton step and one
covariance. With the tangent features t, the design z = (1{k}, t), the residual e = c - n mu, the
variance v of a click count and A = sum v z z' + prior, query g moves the parameters by the
jackknife's step

    (A - A_g)^-1 sum over g of z e = A^-1 sum over g of z (I - H_g)^-1 e,

where H_g is its hat matrix, and the sum of the squares of these steps is their covariance,
clustered by query (CR3 of Bell and McCaffrey 2002). It needs no model of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit

from twotowers.errors import InputError
from twotowers.fitting.conditional import by_pair
from twotowers.fitting.curves import LEVERAGE
from twotowers.fitting.maximise import Point, Step, maximise
from twotowers.fitting.pair_counts import FeatureCounts, PairCounts

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
        bias: [K] theta; NaN for a factor that was never shown, never clicked, or always.
        relevance: [pairs] r(x).
        tangent: [pairs, P] features of the linear model that the tower is close to its optimum.
        inverse: [K + P, K + P] A^-1, with zeros at factors without a bias.
        residual: [rows] (I - H_g)^-1 e, as if the row's query had not been fitted.
    """

    bias: np.ndarray
    relevance: np.ndarray
    tangent: np.ndarray
    inverse: np.ndarray
    residual: np.ndarray

    def steps(self, log: FeatureCounts, reference: int) -> np.ndarray:
        """[queries, K] what each query moves the biases by, relative to that of the reference."""
        counts = log.counts
        queries, factors = len(counts.query), counts.factors
        place = log.cluster * factors + counts.factor
        by_query = np.bincount(place, self.residual, queries * factors).reshape(queries, factors)
        sums = np.bincount(counts.pair, self.residual, len(counts.cluster))
        gather = csr_array(
            (sums, (counts.cluster, np.arange(len(sums)))), shape=(queries, len(sums))
        )
        scores = np.hstack([by_query, gather @ self.tangent])
        moved = scores @ self.inverse[:, : len(self.bias)]
        return moved - moved[:, [reference]]


def fit_tower(log: FeatureCounts, kind: str) -> Tower:
    """Fit a 'linear' tower, or a 'deep' one with `HIDDEN` units."""
    counts = log.counts
    clicks, shown = (
        np.bincount(counts.factor, each, counts.factors)
        for each in (counts.clicks, counts.impressions)
    )
    finite = (clicks > 0) & (clicks < shown)
    fitted = finite[counts.factor]
    if not fitted.any():
        raise InputError("no factor was sometimes clicked and sometimes not", field="clicks")
    problem = _Likelihood(counts, counts.impressions * fitted, counts.clicks * fitted)
    weights = _newton(problem, log.features, np.zeros(len(counts.cluster)), PRIOR["linear"])
    bias, linear = weights[: counts.factors], weights[counts.factors :]
    tangent, relevance = log.features, log.features @ linear
    if kind == "deep":
        net = _train(problem, log.features, bias, linear)
        tangent = net.tangent(log.features)
        # What L-BFGS and the prior left: a step of the linear model on tangent features.
        offset = net(log.features)
        moved = _newton(problem, tangent, offset, PRIOR["deep"], bias=net.bias)
        bias, relevance = moved[: counts.factors], offset + tangent @ moved[counts.factors :]
    expected, weight = problem.moments(problem.logit(bias, relevance))
    inverse = _inverse(_information(problem, weight, tangent, PRIOR[kind]))
    residual = _hat_corrected(log, fitted, weight, problem.clicks - expected, tangent, inverse)
    return Tower(np.where(finite, bias, np.nan), relevance, tangent, inverse, residual)


@dataclass(frozen=True)
class _Likelihood:
    """That of rows of counts whose logit is a bias plus a relevance per pair."""

    counts: PairCounts
    impressions: np.ndarray
    clicks: np.ndarray

    def logit(self, bias: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        return bias[self.counts.factor] + relevance[self.counts.pair]

    def value(self, logit: np.ndarray) -> float:
        """The log-likelihood in nats, up to a constant."""
        return (self.clicks * logit - self.impressions * np.logaddexp(0, logit)).sum()

    def moments(self, logit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected clicks n mu, and their variance by the model."""
        chance = expit(logit)
        return self.impressions * chance, self.impressions * chance * (1 - chance)

    def slopes(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[K], [pairs] derivatives of the likelihood."""
        counts = self.counts
        return (
            np.bincount(counts.factor, residual, counts.factors),
            np.bincount(counts.pair, residual, len(counts.cluster)),
        )


def _information(problem: _Likelihood, weight, tangent, prior: float) -> np.ndarray:
    """[K + P, K + P] A = sum v z z' + prior."""
    each = by_pair(problem.counts, weight)
    border = each.T @ tangent
    shared = np.bincount(problem.counts.pair, weight, len(tangent))
    rooted = tangent * np.sqrt(shared)[:, None]
    inner = rooted.T @ rooted + prior * np.eye(tangent.shape[1])
    return np.block([[np.diag(each.sum(0)), border], [border.T, inner]])


def _inverse(information: np.ndarray) -> np.ndarray:
    """With zeros at biases that have no information."""
    seen = np.diag(information) > 0
    inner = information[np.ix_(seen, seen)]
    # One scale for all parameters.
    scale = 1 / np.sqrt(np.diag(inner))
    inner = inner * scale * scale[:, None]
    try:
        inverse = cho_solve(cho_factor(inner), np.eye(len(inner)))
    except LinAlgError:
        inverse = np.linalg.pinv(inner, rcond=1e-13, hermitian=True)
    whole = np.zeros_like(information)
    whole[np.ix_(seen, seen)] = inverse * scale * scale[:, None]
    return whole


def _newton(problem: _Likelihood, tangent, offset, prior: float, bias=None) -> np.ndarray:
    """[K + P] biases and weights at the optimum, where r is `offset` + `tangent` @ weights."""
    counts = problem.counts
    factors = counts.factors
    start = np.zeros(factors + tangent.shape[1])
    if bias is None:
        shown, clicks = (
            np.bincount(counts.factor, each, factors)
            for each in (problem.impressions, problem.clicks)
        )
        bias = np.log(np.maximum(clicks, 0.5) / np.maximum(shown, 1))
    start[:factors] = bias

    def point(parameters: np.ndarray) -> Point:
        bias, weights = np.split(parameters, [factors])
        logit = problem.logit(bias, offset + tangent @ weights)

        def step() -> Step:
            expected, weight = problem.moments(logit)
            first, second = problem.slopes(problem.clicks - expected)
            score = np.append(first, second @ tangent - prior * weights)
            move = _inverse(_information(problem, weight, tangent, prior)) @ score
            reach = np.abs(move[:factors]).max() + np.abs(tangent @ move[factors:]).max(initial=0)
            return Step(move, score @ move, reach)

        return Point(problem.value(logit) - prior / 2 * weights @ weights, step)

    return maximise(point, start)[0]


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


def _train(problem: _Likelihood, features, bias, linear) -> _Network:
    """A deep tower by L-BFGS, from the optimum of the linear one and hidden units at random."""
    factors, width = len(bias), features.shape[1]
    prior = PRIOR["deep"]
    scale = problem.clicks.sum()
    rng = np.random.default_rng(0)

    def loss(vector):
        net = _Network.of(vector, factors, width)
        hidden = np.tanh(features @ net.first + net.shift)
        relevance = features @ net.linear + hidden @ net.last
        logit = problem.logit(net.bias, relevance)
        expected, _ = problem.moments(logit)
        by_factor, by_pair = problem.slopes(problem.clicks - expected)
        inner = (1 - hidden**2) * net.last * by_pair[:, None]
        slopes = [features.T @ by_pair, (features.T @ inner).ravel(), inner.sum(0)]
        slopes = np.concatenate([*slopes, hidden.T @ by_pair])
        weights = vector[factors:]
        slopes -= prior * weights
        value = problem.value(logit) - prior / 2 * weights @ weights
        return -value / scale, -np.append(by_factor, slopes) / scale

    def descend(start, steps):
        options = {"maxiter": steps, "maxfun": 2 * steps}
        return minimize(loss, start, jac=True, method="L-BFGS-B", options=options)

    def start():
        first = rng.normal(0, 1 / np.sqrt(max(width, 1)), width * HIDDEN)
        hidden = rng.normal(0, 0.5, HIDDEN), rng.normal(0, 0.1, HIDDEN)
        return np.concatenate([bias, linear, first, *hidden])

    begun = [descend(start(), FIRST) for _ in range(STARTS)]
    best = descend(min(begun, key=lambda each: each.fun).x, STEPS)
    return _Network.of(best.x, factors, width)


def _hat_corrected(log: FeatureCounts, fitted, weight, residual, tangent, inverse) -> np.ndarray:
    """[rows] (I - H_g)^-1 e for each query g that holds much of the information."""
    counts = log.counts
    factors = counts.factors
    corrected = residual.copy()
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
        corrected[rows] = root * solve(left, residual[rows] / root, assume_a="pos")
    return corrected

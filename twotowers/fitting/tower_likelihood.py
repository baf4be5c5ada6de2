"""The likelihood of two-tower models of features, and Newton's method on it.

    logit P(click) = theta_k + r(x)   (additive),      ln E[clicks] = theta_k + r(x)   (product),

where r is an offset plus a linear function of some features of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from twotowers.fitting.conditional import by_pair
from twotowers.fitting.maximise import Point, Step, maximise
from twotowers.fitting.pair_counts import PairCounts


def moments(form: str, impressions: np.ndarray, logit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Expected clicks n mu, and their variance by the model."""
    if form == "product":
        expected = impressions * np.exp(np.minimum(logit, 50))
        return expected, expected
    chance = expit(logit)
    return impressions * chance, impressions * chance * (1 - chance)


def likelihood(form: str, impressions, clicks, logit) -> np.ndarray:
    """[rows] log-likelihood of clicks in nats, up to a constant."""
    cumulant = np.exp(np.minimum(logit, 50)) if form == "product" else np.logaddexp(0, logit)
    return clicks * logit - impressions * cumulant


@dataclass(frozen=True)
class TowerLikelihood:
    """Rows of counts whose logit is a bias plus a relevance per pair."""

    counts: PairCounts
    impressions: np.ndarray
    clicks: np.ndarray
    form: str

    def logit(self, bias, relevance):
        return bias[self.counts.factor] + relevance[self.counts.pair]

    def slopes(self, residual) -> tuple[np.ndarray, np.ndarray]:
        """[K], [pairs] derivatives of the likelihood."""
        counts = self.counts
        return (
            np.bincount(counts.factor, residual, counts.factors),
            np.bincount(counts.pair, residual, len(counts.cluster)),
        )


def information(problem: TowerLikelihood, weight, tangent, prior: float) -> np.ndarray:
    """[K + P, K + P] A = sum v z z' + prior."""
    each = by_pair(problem.counts, weight)
    border = each.T @ tangent
    shared = np.bincount(problem.counts.pair, weight, len(tangent))
    rooted = tangent * np.sqrt(shared)[:, None]
    inner = rooted.T @ rooted + prior * np.eye(tangent.shape[1])
    return np.block([[np.diag(each.sum(0)), border], [border.T, inner]])


def inverse_of(given: np.ndarray) -> np.ndarray:
    """The inverse of an information, with zeros at biases that have none."""
    seen = np.diag(given) > 0
    found = np.zeros_like(given)
    inner = given[np.ix_(seen, seen)]
    # One scale for all parameters.
    scale = 1 / np.sqrt(np.diag(inner))
    inner = inner * scale * scale[:, None]
    try:
        inverse = cho_solve(cho_factor(inner), np.eye(len(inner)))
    except LinAlgError:
        inverse = np.linalg.pinv(inner, rcond=1e-13, hermitian=True)
    found[np.ix_(seen, seen)] = inverse * scale * scale[:, None]
    return found


def newton(problem: TowerLikelihood, tangent, offset, prior: float, bias=None) -> np.ndarray:
    """[K + P] biases and weights at the optimum, by Newton's method."""
    counts = problem.counts
    factors = counts.factors
    found = np.zeros(factors + tangent.shape[1])
    if bias is None:
        shown, clicks = (
            np.bincount(counts.factor, each, factors)
            for each in (problem.impressions, problem.clicks)
        )
        found[:factors] = np.log(np.maximum(clicks, 0.5) / np.maximum(shown, 1))
    else:
        found[:factors] = bias

    def point(parameters: np.ndarray) -> Point:
        bias, weights = np.split(parameters, [factors])
        logit = problem.logit(bias, offset + tangent @ weights)
        value = likelihood(problem.form, problem.impressions, problem.clicks, logit).sum()

        def step() -> Step:
            expected, weight = moments(problem.form, problem.impressions, logit)
            first, second = problem.slopes(problem.clicks - expected)
            score = np.append(first, second @ tangent - prior * weights)
            move = inverse_of(information(problem, weight, tangent, prior)) @ score
            reach = np.abs(move[:factors]).max() + np.abs(tangent @ move[factors:]).max(initial=0)
            return Step(move, score @ move, reach)

        return Point(value - prior / 2 * weights @ weights, step)

    return maximise(point, found)[0]

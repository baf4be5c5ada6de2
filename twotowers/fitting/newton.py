"""Exact maximum likelihood of additive click models on counts, by Newton's method.

Both models are logistic regressions, whose log-likelihood is concave. So the optimum does not
depend on the start, except for shifts that the data do not identify: these keep their start.
Gradient fits stop early by design. These optima show what they would reach without stopping.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from twotowers.errors import InputError

TOLERANCE = 1e-9
ITERATIONS = 200


@dataclass(frozen=True)
class AdditiveOptimum:
    """The optimum of an additive model: click logits are relevance + bias.

    Attributes:
        relevance: [documents] logits gamma. A document that was never clicked has -inf, and one
            that was always clicked has inf.
        bias: [factors] logits theta.
        probability: [documents, factors] fitted click probabilities, in [0, 1].
        weights: [width] weights of the features if relevance is linear in them, else None.
    """

    relevance: np.ndarray
    bias: np.ndarray
    probability: np.ndarray
    weights: np.ndarray | None = None


def fit_embedding(
    impressions: np.ndarray, clicks: np.ndarray, *, start: np.ndarray | None = None
) -> AdditiveOptimum:
    """Fit P(click) = sigmoid(gamma_d + theta_k): one logit per document, one per bias factor.

    A bias factor is a position, or another. A document that was never or always clicked has its
    optimum at -inf or inf and carries no information on the bias, so the fit leaves it out. The
    Hessian is a diagonal bordered by few columns, so a step costs O(documents x factors^2).

    Args:
        impressions: [documents, factors] >= 0. Fractions are allowed, for expected counts.
        clicks: the same shape, in [0, impressions].
        start: [factors] start of the bias logits, which also fixes unidentified shifts; zeros if
            None.

    Example:
        >>> clicks = [[50, 25], [80, 50]]
        >>> optimum = fit_embedding([[100, 100], [100, 100]], clicks)
        >>> (optimum.probability.sum(0) * 100).round(3).tolist()  # as many as were clicked
        [130.0, 75.0]
    """
    impressions, clicks = np.asarray(impressions, float), np.asarray(clicks, float)
    shown, clicked = impressions.sum(1), clicks.sum(1)
    kept = (clicked > 0) & (clicked < shown)
    if not kept.any():
        raise InputError("no document was clicked sometimes and sometimes not", field="clicks")
    n, c = impressions[kept], clicks[kept]
    rate = clicked[kept] / shown[kept]
    bias = np.zeros(n.shape[1]) if start is None else np.asarray(start, float)
    relevance = np.log(rate / (1 - rate)) - (n @ bias) / n.sum(1)

    def newton(parameters):
        relevance, bias = parameters
        chance = expit(relevance[:, None] + bias)
        residual, curvature = c - n * chance, n * chance * (1 - chance)
        per_document, per_factor = curvature.sum(1), curvature.sum(0)
        scaled = curvature / per_document[:, None]
        gradient = residual.sum(1), residual.sum(0)
        schur = np.diag(per_factor) - curvature.T @ scaled
        # The matrix is singular along unidentified shifts. The minimum-norm step does not move
        # along them.
        step = np.linalg.pinv(schur, rcond=1e-12, hermitian=True) @ (
            gradient[1] - scaled.T @ gradient[0]
        )
        return ((gradient[0] - curvature @ step) / per_document, step), gradient

    def likelihood(parameters):
        relevance, bias = parameters
        logits = relevance[:, None] + bias
        return (c * logits - n * np.logaddexp(0, logits)).sum()

    relevance, bias = _ascend((relevance, bias), newton, likelihood, scale=n.sum())
    everyone = np.where(clicked > 0, np.inf, -np.inf)
    everyone[kept] = relevance
    return AdditiveOptimum(everyone, bias, expit(everyone[:, None] + bias))


def fit_linear(
    features: np.ndarray,
    impressions: np.ndarray,
    clicks: np.ndarray,
    *,
    start: np.ndarray | None = None,
) -> AdditiveOptimum:
    """Fit P(click) = sigmoid(w x_d + theta_k): relevance linear in the features, no intercept.

    Args:
        features: [documents, width].
        impressions: [documents, factors] >= 0. Fractions are allowed, for expected counts.
        clicks: the same shape, in [0, impressions].
        start: [factors] start of the bias logits, which also fixes unidentified shifts; zeros if
            None.

    Example:
        >>> optimum = fit_linear([[0.0], [1.0]], [[100], [100]], [[50], [80]])
        >>> optimum.probability.round(3).tolist()
        [[0.5], [0.8]]
    """
    features = np.asarray(features, float)
    n, c = np.asarray(impressions, float), np.asarray(clicks, float)
    # Columns of one scale keep the Hessian well-conditioned and do not change the fit.
    scale = np.maximum(np.abs(features).max(0), 1e-12)
    scaled = features / scale

    def newton(parameters):
        weights, bias = parameters
        chance = expit((scaled @ weights)[:, None] + bias)
        residual, curvature = c - n * chance, n * chance * (1 - chance)
        gradient = scaled.T @ residual.sum(1), residual.sum(0)
        border = scaled.T @ curvature
        # The product of a matrix with its own transpose takes half of the time of a general
        # product, and is most of a step.
        rooted = scaled * np.sqrt(curvature.sum(1))[:, None]
        hessian = np.block([[rooted.T @ rooted, border], [border.T, np.diag(curvature.sum(0))]])
        step = np.linalg.pinv(hessian, rcond=1e-14, hermitian=True) @ np.concatenate(gradient)
        return (step[: len(weights)], step[len(weights) :]), gradient

    def likelihood(parameters):
        weights, bias = parameters
        logits = (scaled @ weights)[:, None] + bias
        return (c * logits - n * np.logaddexp(0, logits)).sum()

    bias = np.zeros(n.shape[1]) if start is None else np.asarray(start, float)
    weights, bias = _ascend((np.zeros(features.shape[1]), bias), newton, likelihood, scale=n.sum())
    relevance = scaled @ weights
    chance = expit(relevance[:, None] + bias)
    return AdditiveOptimum(relevance, bias, chance, weights / scale)


def _ascend(parameters, newton, likelihood, *, scale: float):
    """Newton steps until the gradient vanishes, each halved until it lowers no likelihood."""
    value = likelihood(parameters)
    for _ in range(ITERATIONS):
        step, gradient = newton(parameters)
        if max(np.abs(part).max() for part in gradient) < TOLERANCE * scale:
            return parameters
        for halving in range(40):
            moved = [old + part / 2**halving for old, part in zip(parameters, step, strict=True)]
            reached = likelihood(moved)
            if reached >= value - 1e-12 * abs(value):
                break
        parameters, value = moved, reached
    raise InputError(
        f"no optimum after {ITERATIONS} Newton steps", field="fit", expected="a finite optimum"
    )

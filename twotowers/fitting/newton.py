"""Exact maximum likelihood of additive click models on counts, by Newton's method.

Both models are logistic regressions, whose log-likelihood is concave. So the optimum does not
depend on the start, except for shifts that the data do not identify: these keep their start.
Gradient fits stop early by design. These optima show what they would reach without stopping.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from twotowers.errors import InputError
from twotowers.fitting.curves import inverse_root, laplacian_of
from twotowers.fitting.maximise import Point, Step, maximise


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

    Impressions and clicks [documents, factors] may be fractions, for expected counts. A document
    that was never or always clicked has its optimum at -inf or inf and carries no information on
    the bias, so the fit leaves it out. The Hessian is a diagonal bordered by few columns, so a step
    costs O(documents x factors^2). `start` [factors] of the bias logits also fixes unidentified
    shifts; zeros if None.
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

    documents = len(n)

    def point(parameters: np.ndarray) -> Point:
        relevance, bias = np.split(parameters, [documents])
        logits = relevance[:, None] + bias

        def step() -> Step:
            chance = expit(logits)
            residual, curvature = c - n * chance, n * chance * (1 - chance)
            per_document = curvature.sum(1)
            scaled = curvature / per_document[:, None]
            gradient = residual.sum(1)
            laplacian = laplacian_of(curvature.T @ scaled)
            root, _ = inverse_root(laplacian, 0)
            along = root.T @ (residual.sum(0) - scaled.T @ gradient)
            of_bias = _centred(root @ along, laplacian)
            of_relevance = (gradient - curvature @ of_bias) / per_document
            decrement = along @ along + gradient**2 @ (1 / per_document)
            reach = np.abs(of_relevance).max() + np.abs(of_bias).max()
            return Step(np.append(of_relevance, of_bias), decrement, reach)

        return Point((c * logits - n * np.logaddexp(0, logits)).sum(), step)

    optimum, _ = maximise(point, np.append(relevance, bias))
    relevance, bias = np.split(optimum, [documents])
    everyone = np.where(clicked > 0, np.inf, -np.inf)
    everyone[kept] = relevance
    return AdditiveOptimum(everyone, bias, expit(everyone[:, None] + bias))


def fit_linear(
    features: np.ndarray,
    impressions: np.ndarray,
    clicks: np.ndarray,
    *,
    start: np.ndarray | None = None,
    prior: float = 0.0,
) -> AdditiveOptimum:
    """Fit P(click) = sigmoid(w x_d + theta_k): relevance linear in the features, no intercept.

    `features` are [documents, width]; `prior` is the precision of a normal prior of each weight;
    the rest is as in `fit_embedding`.
    """
    features = np.asarray(features, float)
    n, c = np.asarray(impressions, float), np.asarray(clicks, float)
    # Columns of one scale keep the Hessian well-conditioned and do not change the fit.
    scale = np.maximum(np.abs(features).max(0), 1e-12)
    scaled, prior = features / scale, prior / scale**2

    width = features.shape[1]

    def point(parameters: np.ndarray) -> Point:
        weights, bias = np.split(parameters, [width])
        logits = (scaled @ weights)[:, None] + bias

        def step() -> Step:
            chance = expit(logits)
            residual, curvature = c - n * chance, n * chance * (1 - chance)
            of_weights = scaled.T @ residual.sum(1) - prior * weights
            gradient = np.append(of_weights, residual.sum(0))
            border = scaled.T @ curvature
            # The product of a matrix with its own transpose takes half of the time of a general
            # product, and is most of a step.
            rooted = scaled * np.sqrt(curvature.sum(1))[:, None]
            inner = rooted.T @ rooted + np.diag(prior)
            hessian = np.block([[inner, border], [border.T, np.diag(curvature.sum(0))]])
            move = np.linalg.pinv(hessian, rcond=1e-14, hermitian=True) @ gradient
            reach = np.abs(scaled @ move[:width]).max() + np.abs(move[width:]).max()
            return Step(move, gradient @ move, reach)

        likelihood = (c * logits - n * np.logaddexp(0, logits)).sum()
        return Point(likelihood - prior @ weights**2 / 2, step)

    bias = np.zeros(n.shape[1]) if start is None else np.asarray(start, float)
    optimum, _ = maximise(point, np.append(np.zeros(width), bias))
    weights, bias = np.split(optimum, [width])
    relevance = scaled @ weights
    chance = expit(relevance[:, None] + bias)
    return AdditiveOptimum(relevance, bias, chance, weights / scale)


def _centred(move: np.ndarray, laplacian: np.ndarray) -> np.ndarray:
    """The move without the shifts of connected factors, which the data do not identify."""
    part = connected_components(laplacian != 0, directed=False)[1]
    return move - (np.bincount(part, move) / np.bincount(part))[part]

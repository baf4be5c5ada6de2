"""The linear two-tower model of features, with what each query moves its biases by.

Relevance is linear in the features and bias a value per factor,

    logit P(click) = theta_k + w x,

fitted by the likelihood. The weights have a small normal prior, so that the optimum is finite. With
the design z = (1{k}, x), the residual e = c - n mu, the variance v of a click count and
A = sum v z z' + prior, query g moves the parameters by the jackknife's step

    (A - A_g)^-1 sum over g of z e = A^-1 sum over g of z (I - H_g)^-1 e,

where H_g is its hat matrix, and the sum of the squares of these steps is their covariance,
clustered by query (CR3 of Bell and McCaffrey 2002). It needs no model of the variance.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve

from twotowers.errors import InputError
from twotowers.fitting.newton import fit_linear
from twotowers.fitting.pair_counts import PairCounts

PRIOR = 0.01
"""Precision of the normal prior of each weight, of features with standard deviation 1."""


def fit_tower(counts: PairCounts, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[K] theta, NaN for a factor that was never shown, never clicked, or always; and [queries, K]
    what each query moves it by.

    `counts` are of every pair, and `features` [pairs, width] those of each.
    """
    clicked, shown = (
        np.bincount(counts.factor, each, counts.factors)
        for each in (counts.clicks, counts.impressions)
    )
    known = np.flatnonzero((clicked > 0) & (clicked < shown))
    if not len(known):
        raise InputError("no factor was sometimes clicked and sometimes not", field="clicks")
    spread = features.std(0)
    varies = spread > 1e-9 * np.maximum(np.abs(features).max(0), 1e-300)
    features = (features[:, varies] - features[:, varies].mean(0)) / spread[varies]
    rows = np.flatnonzero(np.isin(counts.factor, known))
    pair, factor = counts.pair[rows], np.searchsorted(known, counts.factor[rows])
    n, c = counts.impressions[rows], counts.clicks[rows]
    table = np.zeros((2, len(features), len(known)))
    table[:, pair, factor] = n, c
    optimum = fit_linear(features, *table, prior=PRIOR)
    chance = optimum.probability[pair, factor]
    residual, weight = c - n * chance, np.maximum(n * chance * (1 - chance), 1e-300)
    design = np.hstack([np.eye(len(known))[factor], features[pair]])
    prior = np.repeat([0, PRIOR], [len(known), features.shape[1]])
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design) + np.diag(prior))
    bias = np.full(counts.factors, np.nan)
    bias[known] = optimum.bias
    steps = np.zeros((len(counts.query), counts.factors))
    query = counts.cluster[pair]
    order = np.argsort(query, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        root = np.sqrt(weight[own])
        hat = root[:, None] * (design[own] @ inverse @ design[own].T) * root
        # What a query alone tells it fits exactly, so its residual is 0 there.
        left = np.eye(len(own)) * (1 + 1e-9) - hat
        corrected = root * solve(left, residual[own] / root, assume_a="pos")
        steps[query[own[0]], known] = corrected @ design[own] @ inverse[:, : len(known)]
    return bias, steps

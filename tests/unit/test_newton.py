"""Exact optima: vanishing gradients, SciPy, shifts, and parameters that are not identified."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from twotowers.errors import InputError
from twotowers.fitting.newton import fit_embedding, fit_linear
from twotowers.models.additive import inverse_rank as position_bias


def make_log(documents=30, factors=4, views=40, seed=0, connected=True):
    """Impressions and sampled clicks of documents that move over positions (or do not)."""
    rng = np.random.default_rng(seed)
    if connected:
        n = rng.integers(1, views, (documents, factors))
    else:  # the first half of the factors never shares a document with the second
        half = (np.arange(documents) % 2)[:, None] == (np.arange(factors) >= factors // 2)
        n = rng.integers(1, views, (documents, factors)) * half
    relevance = rng.normal(size=documents)
    c = rng.binomial(n, expit(relevance[:, None] + position_bias(factors)))
    keep = (c.sum(1) > 0) & (c.sum(1) < n.sum(1))
    return n[keep], c[keep]


def test_closed_form_of_one_factor():
    n, c = np.array([[10], [8]]), np.array([[3], [6]])
    estimate = fit_embedding(n, c)
    np.testing.assert_allclose(estimate.probability, c / n, rtol=1e-6)
    np.testing.assert_allclose(estimate.relevance + estimate.bias, logit(c / n)[:, 0], rtol=1e-6)


def test_against_scipy():
    n, c = make_log()
    documents = len(n)

    def loss(parameters):
        z = parameters[:documents, None] + parameters[documents:]
        residual = n * expit(z) - c
        value = (n * np.logaddexp(0, z) - c * z).sum()
        return value, np.concatenate([residual.sum(1), residual.sum(0)])

    start = np.zeros(documents + n.shape[1])
    reached = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-7})
    theta, gamma = reached.x[documents:], reached.x[:documents]
    estimate = fit_embedding(n, c)
    np.testing.assert_allclose(estimate.bias - estimate.bias[0], theta - theta[0], atol=1e-5)
    np.testing.assert_allclose(estimate.relevance + estimate.bias[0], gamma + theta[0], atol=1e-5)


def test_recovers_the_truth_from_expected_clicks():
    """With expected clicks, which are fractional, the optimum is the truth."""
    n, _ = make_log()
    gamma = np.random.default_rng(1).normal(size=len(n))
    truth = position_bias(4)
    estimate = fit_embedding(0.5 * n, 0.5 * n * expit(gamma[:, None] + truth))
    np.testing.assert_allclose(estimate.bias - estimate.bias[0], truth, atol=1e-6)
    np.testing.assert_allclose(estimate.relevance + estimate.bias[0], gamma, atol=1e-6)


@pytest.mark.parametrize("components", [[[0, 1, 2, 3]], [[0, 1], [2, 3]]])
def test_a_start_moves_each_component_by_one_shift(components):
    """The shift that the data do not identify stays at its start."""
    n, c = make_log(connected=len(components) == 1)
    for seed in range(3):
        start = np.random.default_rng(seed).normal(size=4) * 3
        plain, other = fit_embedding(n, c), fit_embedding(n, c, start=start)
        np.testing.assert_allclose(other.probability[n > 0], plain.probability[n > 0], atol=1e-6)
        for own in components:
            np.testing.assert_allclose(
                np.diff(other.bias[own]), np.diff(plain.bias[own]), atol=1e-5
            )
            assert other.bias[own].mean() == pytest.approx(start[own].mean(), abs=1e-6)
            assert plain.bias[own].mean() == pytest.approx(0, abs=1e-6)


def test_documents_clicked_never_or_always_say_nothing_of_the_bias():
    n, c = make_log()
    never, always = np.zeros((1, 4)), np.full((1, 4), 7.0)
    estimate = fit_embedding(np.vstack([n, always, always]), np.vstack([c, never, always]))
    plain = fit_embedding(n, c)
    np.testing.assert_allclose(estimate.bias, plain.bias, atol=1e-9)
    np.testing.assert_allclose(estimate.relevance[:-2], plain.relevance, atol=1e-9)
    assert estimate.relevance[-2:].tolist() == [-np.inf, np.inf]
    np.testing.assert_array_equal(estimate.probability[-2:], [[0] * 4, [1] * 4])


def test_a_factor_never_shown_stays_where_it_started():
    n, c = make_log()
    n, c = np.insert(n, 2, 0, axis=1), np.insert(c, 2, 0, axis=1)
    start = np.array([0.0, 0, 3, 0, 0])
    estimate = fit_embedding(n, c, start=start)
    assert estimate.bias[2] == pytest.approx(3)
    np.testing.assert_allclose(np.delete(estimate.bias, 2), fit_embedding(*make_log()).bias)


def test_nothing_to_fit():
    with pytest.raises(InputError, match="no document was clicked sometimes"):
        fit_embedding(np.full((2, 2), 3), np.array([[0, 0], [3, 3]]))


# Relevance linear in features.


def linear_log(seed=0, scale=1.0, documents=60):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(documents, 3)) * scale
    n = rng.integers(1, 50, (documents, 4))
    c = rng.binomial(n, expit((features / scale @ [1, -0.5, 0.2])[:, None] + position_bias(4)))
    return features, n, c


def test_linear_against_scipy():
    features, n, c = linear_log()

    def loss(parameters):
        z = (features @ parameters[:3])[:, None] + parameters[3:]
        residual = n * expit(z) - c
        value = (n * np.logaddexp(0, z) - c * z).sum()
        return value, np.concatenate([features.T @ residual.sum(1), residual.sum(0)])

    reached = minimize(loss, np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    estimate = fit_linear(features, n, c)
    np.testing.assert_allclose(estimate.bias, reached[3:], atol=1e-5)
    np.testing.assert_allclose(estimate.relevance, features @ reached[:3], atol=1e-5)


def test_linear_recovers_the_truth_whatever_the_features_scale():
    for scale in (np.ones(3), np.array([1e-6, 1, 1e8])):
        features, n, _ = linear_log(scale=scale)
        truth = position_bias(4)
        c = n * expit((features / scale @ [1, -0.5, 0.2])[:, None] + truth)
        # Without an intercept among the features, the bias is identified absolutely.
        np.testing.assert_allclose(fit_linear(features, n, c).bias, truth, atol=1e-6)


def test_linear_with_constant_and_duplicate_features_fits_the_same_clicks():
    features, n, c = linear_log()
    plain = fit_linear(features, n, c)
    redundant = np.column_stack([features, features[:, 0], np.zeros(len(n)), np.ones(len(n))])
    other = fit_linear(redundant, n, c)
    np.testing.assert_allclose(other.probability, plain.probability, atol=1e-6)
    np.testing.assert_allclose(np.diff(other.bias), np.diff(plain.bias), atol=1e-5)

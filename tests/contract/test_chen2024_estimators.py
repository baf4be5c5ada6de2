"""The published estimators of Chen et al. (2024): slow loops, gradients, and what all keep to."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from papers.chen2024.methods.naive import fit_naive
from papers.chen2024.methods.rate_dla import MeanRatio
from papers.chen2024.methods.rate_em import CollapsedEM
from papers.chen2024.methods.two_tower import _gradient, fit_two_tower
from tests.rates import (
    PROPERTIES,
    a_fixed_point_ends_the_iteration_early,
    exact,
    extreme_rates_stay_finite,
    high_start,
    least_squares_relevance,
    means,
    noisy,
    one_cell,
    steps_are_these,
)
from twotowers.fitting.tiles import lay_out
from twotowers.methods.alternation import alternate, click_mse


def fit_dla(rates, start, *, steps):
    return alternate(rates, start, MeanRatio(), steps=steps)


def fit_regression_em(rates, start, *, steps):
    return alternate(rates, start, CollapsedEM(), steps=steps)


ESTIMATORS = [fit_dla, fit_regression_em, fit_two_tower]


def starts(fit):
    """Where an estimator starts: examination, or logits of it."""
    return normal_logits if fit is fit_two_tower else high_start


def normal_logits(rates, seed=0):
    return np.random.default_rng(seed).normal(size=(len(rates.rate), rates.factors))


def slow_dla(rows, o, features):
    """One published step for one lane, row by row."""
    r = least_squares_relevance(rows, o, features)
    new = means([(t, c * r[x] / (r[x] ** 2 + 1e-8), w) for x, t, c, w in rows], o)
    return np.clip(r, 0, 1), np.clip(new, 0, 1)


def slow_em(rows, o, features):
    """The same of the published regression EM, with its E-step as written there."""
    r, count = np.zeros(features), np.full(features, 1e-8)
    for x, t, c, w in rows:
        former = c / (o[t] + 1e-8)
        r[x] += w * (c + (1 - c) * (1 - o[t]) * former / (1 - o[t] * former))
        count[x] += w
    r /= count
    clicked = [(t, c + (1 - c) * o[t] * (1 - r[x]) / (1 - o[t] * r[x]), w) for x, t, c, w in rows]
    return np.clip(r, 0, 1), np.clip(means(clicked, o), 0, 1)


@pytest.mark.parametrize(("fit", "slow"), [(fit_dla, slow_dla), (fit_regression_em, slow_em)])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_updates_are_the_published_ones(fit, slow, steps):
    steps_are_these(fit, slow, steps)


def cross_entropy(rates, lane, relevance, examination):
    p = expit(relevance)[rates.feature] * expit(examination)[rates.factor[lane]]
    c, w = rates.rate[lane].astype(float), rates.weight[lane]
    return -(w * (c * np.log(p) + (1 - c) * np.log(1 - p))).sum() / w.sum()


def numerical_gradient(function, at, step=1e-5):
    moves = step * np.eye(len(at))
    return np.array([function(at + move) - function(at - move) for move in moves]) / (2 * step)


def test_gradient_of_the_two_towers():
    rates = noisy()
    rng = np.random.default_rng(1)
    relevance, examination = rng.normal(size=(3, rates.features)), rng.normal(size=(3, 5))
    layout = lay_out(rates)
    by_layer, by_examination = _gradient(
        layout, layout.by_layer(relevance, jnp.float32), jnp.asarray(examination, jnp.float32)
    )
    by_relevance = layout.by_feature(by_layer, rates.features)
    for lane in range(3):
        z, theta = relevance[lane], examination[lane]
        wanted = numerical_gradient(lambda z: cross_entropy(rates, lane, z, theta), z)  # noqa: B023
        np.testing.assert_allclose(by_relevance[lane], wanted, atol=1e-7)
        wanted = numerical_gradient(lambda t: cross_entropy(rates, lane, z, t), theta)  # noqa: B023
        np.testing.assert_allclose(by_examination[lane], wanted, atol=1e-7)


def test_first_step_of_the_two_towers_is_that_of_adam():
    """Adam's first step is the learning rate against the gradient's sign."""
    rates = noisy()
    start = normal_logits(rates)
    found = fit_two_tower(rates, start, steps=1)
    for lane in range(3):
        zeros = np.zeros(rates.features)
        g = numerical_gradient(lambda z: cross_entropy(rates, lane, z, start[lane]), zeros)  # noqa: B023
        step = -0.01 * g / (np.abs(g) + 1e-8)
        seen = np.isin(np.arange(rates.features), rates.feature)
        np.testing.assert_allclose(found.relevance[lane, seen], expit(step[seen]), atol=1e-6)


@pytest.mark.parametrize("fit", ESTIMATORS)
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda check: check.__name__)
def test_properties(holds, fit):
    holds(fit, starts(fit))


def test_dla_keeps_a_start_below_the_click_rate():
    """One document under one factor: r is cut to 1, and only least squares then moves o."""
    found = fit_dla(one_cell(), np.array([[0.1]]), steps=3)
    assert found.examination[0, 0] == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("fit", [fit_dla, fit_regression_em])
def test_extreme_rates_stay_finite(fit):
    extreme_rates_stay_finite(fit)


def test_regression_em_does_not_leave_an_examination_of_one():
    """Nor does it fit the clicks then, although the log is connected."""
    rates = exact()
    found = fit_regression_em(rates, np.array([[0.5, 0.5, 0.5, 1.0]]), steps=4000)
    assert found.examination[0, 3] == 1
    assert click_mse(rates, found)[0] > 1e-4


def test_a_fixed_point_ends_the_iteration_early():
    a_fixed_point_ends_the_iteration_early(fit_regression_em)


def test_naive_is_the_mean_rate():
    rates = noisy()
    found = fit_naive(rates)
    assert (found.examination == 1).all()
    for lane in range(3):
        for feature in range(rates.features):
            here = rates.feature == feature
            weight = rates.weight[lane, here]
            mean = np.average(rates.rate[lane, here], weights=weight) if weight.any() else 0
            assert found.relevance[lane, feature] == pytest.approx(mean)

"""The published estimators of Chen et al. (2024): slow loops, gradients, and what all keep to."""

import jax.numpy as jnp
import numpy as np
import pytest

from papers.chen2024.methods.rate_dla import MeanRatio
from papers.chen2024.methods.rate_em import CollapsedEM
from papers.chen2024.methods.two_tower import _gradient, fit_two_tower
from tests.rates import (
    PROPERTIES,
    a_factor_never_seen_stays_as_it_started,
    exact,
    extreme_rates_stay_finite,
    high_start,
    least_squares_relevance,
    noisy,
    one_cell,
    rows_of,
)
from twotowers.fitting.alternating import LeastSquares, alternate
from twotowers.fitting.click_rates import click_mse
from twotowers.fitting.tiles import lay_out


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


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def slow_dla(rows, o, features):
    """One published step for one lane, row by row."""
    r = least_squares_relevance(rows, o, features)
    new = o.copy()
    for t in range(len(o)):
        here = [(w, c * r[x] / (r[x] ** 2 + 1e-8)) for x, at, c, w in rows if at == t and w]
        if here:
            new[t] = np.average([value for _, value in here], weights=[w for w, _ in here])
    return np.clip(r, 0, 1), np.clip(new, 0, 1)


def slow_em(rows, o, features):
    """The same of the published regression EM, with its E-step as written there."""
    r, count = np.zeros(features), np.full(features, 1e-8)
    for x, t, c, w in rows:
        former = c / (o[t] + 1e-8)
        r[x] += w * (c + (1 - c) * (1 - o[t]) * former / (1 - o[t] * former))
        count[x] += w
    r /= count
    new = o.copy()
    for t in range(len(o)):
        here = [
            (w, c + (1 - c) * o[t] * (1 - r[x]) / (1 - o[t] * r[x]))
            for x, at, c, w in rows
            if at == t and w
        ]
        if here:
            new[t] = np.average([value for _, value in here], weights=[w for w, _ in here])
    return np.clip(r, 0, 1), np.clip(new, 0, 1)


@pytest.mark.parametrize(("fit", "slow"), [(fit_dla, slow_dla), (fit_regression_em, slow_em)])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_updates_are_the_published_ones(fit, slow, steps):
    rates = noisy()
    start = high_start(rates)
    found = fit(rates, start, steps=steps)
    for lane in range(3):
        o = start[lane]
        for _ in range(steps):
            r, o = slow(rows_of(rates, lane), o, rates.features)
        np.testing.assert_allclose(found.relevance[lane], r, atol=2e-6)
        np.testing.assert_allclose(found.examination[lane], o, atol=2e-6)


def cross_entropy(rates, lane, relevance, examination):
    r, o = (1 / (1 + np.exp(-logits)) for logits in (relevance, examination))
    p = r[rates.feature] * o[rates.factor[lane]]
    c, w = rates.rate[lane].astype(float), rates.weight[lane]
    return -(w * (c * np.log(p) + (1 - c) * np.log(1 - p))).sum() / w.sum()


def numerical_gradient(function, at, step=1e-5):
    found = np.zeros(len(at))
    for i in range(len(at)):
        moved = np.zeros(len(at))
        moved[i] = step
        found[i] = (function(at + moved) - function(at - moved)) / (2 * step)
    return found


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
        wanted = 1 / (1 + np.exp(-step[seen]))
        np.testing.assert_allclose(found.relevance[lane, seen], wanted, atol=1e-6)


@pytest.mark.parametrize("fit", ESTIMATORS)
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda check: check.__name__)
def test_properties(holds, fit):
    holds(fit, starts(fit))


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_a_factor_never_seen_stays_as_it_started(fit):
    examination_of = sigmoid if fit is fit_two_tower else np.asarray
    a_factor_never_seen_stays_as_it_started(fit, starts(fit), examination_of)


def test_dla_keeps_a_start_below_the_click_rate():
    """One document under one factor: r is cut to 1, and only least squares then moves o."""
    rates = one_cell()
    start = np.array([[0.1]])
    mended = alternate(rates, start, LeastSquares(), steps=3)
    assert mended.examination[0, 0] == pytest.approx(0.4)
    assert fit_dla(rates, start, steps=3).examination[0, 0] == pytest.approx(0.1, rel=1e-5)


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
    # With one row per feature and o = 1, relevance is the rate and nothing changes.
    rates = exact(np.arange(4), np.arange(4))
    found = fit_regression_em(rates, np.ones((1, 4)), steps=2**31 - 1)
    np.testing.assert_allclose(found.relevance[0, :4], rates.rate[0], rtol=1e-6)
    assert (found.examination == 1).all()

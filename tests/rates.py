"""Click rates for tests, and checks of every estimator on them.

A check takes `fit(rates, start, *, steps)` and `start_of(rates)`.
"""

from dataclasses import replace

import numpy as np

from twotowers.claims.metrics import correlation
from twotowers.fitting.tiles import ClickRates
from twotowers.methods.alternation import click_mse

# Documents 0-3 are each seen under two neighbouring factors of a circle, document 4 under one.
FEATURE = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])
FACTOR = np.array([0, 1, 1, 2, 2, 3, 3, 0, 0])
RELEVANCE = np.array([0.5, 0.3, 0.4, 0.2, 0.6])
EXAMINATION = np.array([0.7, 0.6, 0.4, 0.3])


def exact(feature=FEATURE, factor=FACTOR, lanes=1):
    """Click rates without sampling noise, the same in all lanes."""
    rate = np.tile(RELEVANCE[feature] * EXAMINATION[factor], (lanes, 1)).astype(np.float32)
    return ClickRates(
        feature, np.tile(factor, (lanes, 1)), rate, np.ones_like(rate), len(RELEVANCE), 4
    )


def one_cell(rate=0.4):
    """One document under one factor."""
    one = np.ones((1, 1), np.float32)
    return ClickRates(np.array([0]), np.array([[0]]), np.float32(rate) * one, one, 1, 1)


def noisy(lanes=3, rows=80, features=20, factors=5, seed=0):
    """Rows with duplicates and features under up to all factors; weights 0, 1 and 2.

    Each lane merges the last two factors in its own way.
    """
    rng = np.random.default_rng(seed)
    feature = rng.integers(features, size=rows)
    factor = rng.integers(factors, size=rows)
    merge = np.tile(np.arange(factors), (lanes, 1))
    merge[1::3, -1] = 0
    merge[2::3, -2] = factors - 1
    return ClickRates(
        feature=feature,
        factor=merge[:, factor],
        rate=rng.uniform(0.01, 0.4, (lanes, rows)).astype(np.float32),
        weight=rng.choice([0, 1, 1, 2], (lanes, rows)).astype(np.float32),
        features=features,
        factors=factors,
    )


def rows_of(rates, lane):
    """(feature, factor, rate, weight) of each row."""
    return list(
        zip(rates.feature, rates.factor[lane], rates.rate[lane], rates.weight[lane], strict=True)
    )


def least_squares_relevance(rows, o, features):
    """[features] r = sum(c o) / (sum(o^2) + 1e-8) of one lane, row by row."""
    r, squares = np.zeros(features), np.full(features, 1e-8)
    for x, t, c, w in rows:
        r[x] += w * c * o[t]
        squares[x] += w * o[t] ** 2
    return r / squares


def means(rows, former):
    """The mean by number of rows (number, value, weight); where none has weight, the former."""
    total, weight = np.zeros(len(former)), np.zeros(len(former))
    for number, value, w in rows:
        total[number] += w * value
        weight[number] += w
    return np.divide(total, weight, out=former.copy(), where=weight > 0)


def high_start(rates, seed=0):
    """From lower starts, clipping to 1 can stop the alternating estimators short of a fit."""
    return np.random.default_rng(seed).uniform(0.5, 1, (len(rates.rate), rates.factors))


def connected_rates_are_recovered_up_to_one_scale(fit, start_of):
    rates = exact(lanes=4)
    found = fit(rates, start_of(rates), steps=4000)
    assert (click_mse(rates, found) < 1e-8).all()
    for r, o in zip(found.relevance, found.examination, strict=True):
        np.testing.assert_allclose(r / r[0], RELEVANCE / RELEVANCE[0], rtol=2e-3)
        np.testing.assert_allclose(o / o[0], EXAMINATION / EXAMINATION[0], rtol=2e-3)
    np.testing.assert_allclose(correlation(RELEVANCE, found.relevance), 1, atol=1e-5)


def disconnected_rates_are_fitted_but_not_recovered(fit, start_of):
    # Documents 0 and 1 tie factors 0 and 1, documents 2 and 3 factors 2 and 3.
    feature, factor = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 1, 2, 3, 2, 3])
    rates = exact(feature, factor, lanes=4)
    found = fit(rates, start_of(rates), steps=4000)
    assert (click_mse(rates, found) < 1e-8).all()
    scale = found.relevance[:, :4] / RELEVANCE[:4]
    np.testing.assert_allclose(scale[:, 0], scale[:, 1], rtol=2e-3)
    np.testing.assert_allclose(scale[:, 2], scale[:, 3], rtol=2e-3)
    assert np.ptp(scale[:, 0] / scale[:, 2]) > 0.1


def steps_are_these(fit, slow, steps):
    """`slow(rows, o, features)` is one step for one lane, row by row."""
    rates = noisy()
    start = high_start(rates)
    found = fit(rates, start, steps=steps)
    for lane in range(3):
        o = start[lane]
        for _ in range(steps):
            r, o = slow(rows_of(rates, lane), o, rates.features)
        np.testing.assert_allclose(found.relevance[lane], r, atol=2e-6)
        np.testing.assert_allclose(found.examination[lane], o, atol=2e-6)
    assert found.steps == steps


def extreme_rates_stay_finite(fit):
    for rate in (0, 1):
        rates = replace(exact(), rate=np.full((1, len(FEATURE)), rate, np.float32))
        for start in (0.0, 1.0):
            found = fit(rates, np.full((1, 4), start), steps=5)
            assert np.isfinite(found.relevance).all()
            assert np.isfinite(found.examination).all()


def a_fixed_point_ends_the_iteration_early(fit):
    # With one row per feature and o = 1, relevance is the rate and nothing changes.
    rates = exact(np.arange(4), np.arange(4))
    found = fit(rates, np.ones((1, 4)), steps=2**31 - 1)
    np.testing.assert_allclose(found.relevance[0, :4], rates.rate[0], rtol=1e-6)
    assert (found.examination == 1).all()


PROPERTIES = [
    connected_rates_are_recovered_up_to_one_scale,
    disconnected_rates_are_fitted_but_not_recovered,
]
"""Checks of any estimator."""

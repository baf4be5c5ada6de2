"""Alternation on click rates: the textbook's rules, closed forms, slow loops, lanes."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy

from tests.rates import (
    PROPERTIES,
    a_factor_never_seen_stays_as_it_started,
    a_fixed_point_ends_the_iteration_early,
    extreme_rates_stay_finite,
    high_start,
    least_squares_relevance,
    means,
    noisy,
    one_cell,
    rows_of,
    steps_are_these,
)
from twotowers.fitting.alternating import ExpectationMaximisation, LeastSquares, alternate
from twotowers.fitting.click_rates import RateEstimate, click_mse, fit_naive

least_squares = partial(alternate, rule=LeastSquares())
em = partial(alternate, rule=ExpectationMaximisation())
ESTIMATORS = [least_squares, em]
IDS = ["least squares", "EM"]


def slow_least_squares(rows, o, features):
    """One step of Appendix C.3's formulas, o from the relevance just clipped."""
    r = np.clip(least_squares_relevance(rows, o, features), 0, 1)
    new = o.copy()
    for t in range(len(o)):
        here = [(w * c * r[x], w * r[x] ** 2) for x, at, c, w in rows if at == t and w]
        if here:
            clicks, squares = np.sum(here, axis=0)
            new[t] = clicks / squares
    return r, np.clip(new, 0, 1)


def slow_em(rows, o, r):
    """One step of EM: both expectations are computed from the previous step."""
    by_feature, by_factor = [], []
    for x, t, c, w in rows:
        neither = 1 - o[t] * r[x]
        by_feature.append((x, c + (1 - c) * r[x] * (1 - o[t]) / neither, w))
        by_factor.append((t, c + (1 - c) * o[t] * (1 - r[x]) / neither, w))
    return means(by_feature, r), means(by_factor, o)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_least_squares_is_its_formula(steps):
    steps_are_these(least_squares, slow_least_squares, steps)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_em_is_its_formula(steps):
    rates = noisy()
    rng = np.random.default_rng(1)
    start, relevance = rng.random((3, rates.factors)), rng.random((3, rates.features))
    rule = ExpectationMaximisation()
    found = alternate(rates, start, rule, steps=steps, relevance=relevance)
    for lane in range(3):
        o, r = start[lane], relevance[lane]
        for _ in range(steps):
            r, o = slow_em(rows_of(rates, lane), o, r)
        seen = np.isin(np.arange(rates.features), rates.feature)
        np.testing.assert_allclose(found.relevance[lane, seen], r[seen], atol=2e-6)
        np.testing.assert_allclose(found.examination[lane], o, atol=2e-6)


def minus_log_likelihood(rates, found):
    chance = found.relevance[:, rates.feature].astype(float)
    chance *= np.take_along_axis(found.examination, rates.factor, 1)
    return -(rates.weight * (xlogy(rates.rate, chance) + xlog1py(1 - rates.rate, -chance))).sum(1)


@pytest.mark.parametrize(
    ("fit", "error"), [(least_squares, click_mse), (em, minus_log_likelihood)], ids=IDS
)
def test_a_rules_own_error_never_grows(fit, error):
    rates = noisy()
    start = high_start(rates)
    errors = np.array([error(rates, fit(rates, start, steps=steps)) for steps in range(1, 30)])
    assert (np.diff(errors, axis=0) <= 1e-6 * errors[1:]).all()
    assert (errors[-1] < errors[0]).all()


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


@pytest.mark.parametrize("fit", ESTIMATORS, ids=IDS)
@pytest.mark.parametrize(
    "holds",
    [*PROPERTIES, a_factor_never_seen_stays_as_it_started],
    ids=lambda check: check.__name__,
)
def test_properties(holds, fit):
    holds(fit, high_start)


@pytest.mark.parametrize("fit", ESTIMATORS, ids=IDS)
def test_extreme_rates_stay_finite_and_a_fixed_point_ends_the_iteration(fit):
    extreme_rates_stay_finite(fit)
    a_fixed_point_ends_the_iteration_early(fit)


def test_least_squares_mends_a_start_below_the_click_rate():
    """One document under one factor. r is cut to 1, and o follows in a step."""
    rates = one_cell()
    start = np.array([[0.1]])
    assert least_squares(rates, start, steps=3).examination[0, 0] == pytest.approx(0.4)


def test_click_mse_is_the_mean_over_weighted_rows():
    rates = noisy()
    rng = np.random.default_rng(1)
    found = RateEstimate(rng.random((3, rates.features)), rng.random((3, rates.factors)))
    for lane in range(3):
        errors = [
            (w, (found.relevance[lane, x] * found.examination[lane, t] - c) ** 2)
            for x, t, c, w in rows_of(rates, lane)
        ]
        wanted = sum(w * e for w, e in errors) / sum(w for w, _ in errors)
        assert click_mse(rates, found)[lane] == pytest.approx(wanted)


@dataclass(frozen=True)
class Damped(LeastSquares):
    """Least squares with steps of a share of the way."""

    share: float = 1.0

    def change(self, block, o, r):
        return self.share * super().change(block, o, r)


def test_a_rule_of_ones_own_may_have_settings():
    rates = noisy()
    start = high_start(rates)
    plain = least_squares(rates, start, steps=1).examination
    for share in (1.0, 0.5):
        found = alternate(rates, start, Damped(share), steps=1).examination
        # No factor reaches an end of [0, 1] in this step.
        np.testing.assert_allclose(found - start, share * (plain - start), atol=1e-6)

"""Alternation on click rates: slow loops, closed forms, lanes."""

from functools import partial

import numpy as np
import pytest

from tests.rates import (
    PROPERTIES,
    a_fixed_point_ends_the_iteration_early,
    extreme_rates_stay_finite,
    high_start,
    least_squares_relevance,
    noisy,
    rows_of,
    steps_are_these,
)
from twotowers.methods.alternation import LeastSquares, RateEstimate, alternate, click_mse

least_squares = partial(alternate, rule=LeastSquares())


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


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_least_squares_is_its_formula(steps):
    steps_are_these(least_squares, slow_least_squares, steps)


def test_its_error_never_grows():
    rates = noisy()
    start = high_start(rates)
    errors = np.array(
        [click_mse(rates, least_squares(rates, start, steps=steps)) for steps in range(1, 30)]
    )
    assert (np.diff(errors, axis=0) <= 1e-6 * errors[1:]).all()
    assert (errors[-1] < errors[0]).all()


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda check: check.__name__)
def test_properties(holds):
    holds(least_squares, high_start)


def test_extreme_rates_stay_finite_and_a_fixed_point_ends_the_iteration():
    extreme_rates_stay_finite(least_squares)
    a_fixed_point_ends_the_iteration_early(least_squares)


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

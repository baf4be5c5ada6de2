"""The slope of a curve in attraction: 0 where its form holds, found where it does not."""

import numpy as np
import pandas as pd
import pytest

from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.specification import fit_slope, odd_positions
from twotowers.identifiability.strength import growth_of
from twotowers.randomness import draw_clicks


def drawn(seed, form, *, pairs=1_000, shown=6):
    rng = np.random.default_rng(seed)
    pair = np.repeat(np.arange(pairs), shown)
    factor = rng.integers(3, size=len(pair))
    attraction, examination = rng.beta(1, 2, pairs)[pair], np.array([1, 0.4, 0.15])[factor]
    odds = attraction / (1 - attraction) * examination
    chance = attraction * examination if form == "product" else odds / (1 + odds)
    clicks = rng.random(len(pair)) < chance
    return PairCounts.of_arrays(
        pair, factor, np.ones(len(pair)), clicks, query=pair // 5, factors=3
    ), rng


@pytest.mark.parametrize("form", ["product", "additive"])
def test_a_form_that_holds_has_no_slope(form):
    p = []
    for seed in range(25):
        counts, rng = drawn(seed, form)
        p.append(fit_slope(counts, fit_conditional(counts, form=form), form=form, rng=rng).p)
    # 25 uniform numbers: a fair test has more than four below .05 once in 140 times.
    assert sum(each < 0.05 for each in p) <= 4
    assert 0.3 < np.mean(p) < 0.7


@pytest.mark.parametrize(("form", "sign"), [("product", -1), ("additive", 1)])
def test_the_other_form_is_noticed(form, sign):
    other = {"product": "additive", "additive": "product"}[form]
    for seed in range(2):
        counts, rng = drawn(seed, other, pairs=6_000)
        slope = fit_slope(counts, fit_conditional(counts, form=form), form=form, rng=rng)
        assert slope.p < 0.01
        assert np.sign(slope.value) == sign


def test_a_log_that_tells_nothing_has_none():
    counts = PairCounts.of_arrays([0, 0], [0, 1], [5, 5], [0, 0])
    slope = fit_slope(counts, fit_conditional(counts), rng=np.random.default_rng(0))
    assert (slope.p, np.isnan(slope.value)) == (1.0, True)


@pytest.mark.parametrize("shown", [10**6, 3 * 10**9, 10**15])
@pytest.mark.parametrize(("clicks", "drawn"), [(0.4, 0.5), (0.4, 5), (3, 0.5), (0.002, 5)])
def test_clicks_of_some_impressions_have_the_hypergeometric_law(shown, clicks, drawn):
    clicked, size = (int(each * shown) if each < 1 else each for each in (clicks, drawn))
    draws = np.full(20_000, 1)
    found = draw_clicks(np.random.default_rng(0), clicked * draws, shown * draws, size * draws)
    assert found.min() >= 0
    assert found.max() <= min(clicked, size)
    mean = size * (clicked / shown)
    variance = mean * (1 - clicked / shown) * (shown - size) / (shown - 1)
    assert abs(found.mean() - mean) < 4 * np.sqrt(variance / len(draws))
    assert found.var() == pytest.approx(variance, rel=0.2 if mean < 0.1 else 0.05)


@pytest.mark.parametrize("form", ["product", "additive"])
def test_cells_with_billions_of_impressions(form):
    rng = np.random.default_rng(1)
    pair, factor = np.repeat(np.arange(60), 2), np.tile([0, 1], 60)
    chance = rng.uniform(0.1, 0.8, 60)[pair] * np.array([1, 0.5])[factor]
    shown = np.full(120, 4 * 10**9)
    counts = PairCounts.of_arrays(pair, factor, shown, rng.binomial(shown, chance))
    curve = fit_conditional(counts, form=form)
    slope = fit_slope(counts, curve, form=form, rng=rng)
    assert (slope.p < 0.001) == (form == "additive")
    assert growth_of(counts, curve) == pytest.approx([1, 1], abs=0.01)


def odd(log_estimate, *, error=0.01, freedom=50, **names) -> list[int]:
    size = len(log_estimate)
    table = pd.DataFrame({"position": np.arange(1, size + 1), **names})
    found = odd_positions(table, log_estimate, error**2 * np.eye(size), np.full(size, freedom))
    return (1 + found).tolist()


@pytest.mark.parametrize(("off", "steep"), [(-0.8, 1), (0.3, 2)])
def test_one_position_off_the_curve_of_its_neighbours_is_odd(off, steep):
    curve = -steep * np.log(np.arange(1.0, 10))
    for place in range(3, 8):
        changed = curve + off * (np.arange(1, 10) == place)
        assert odd(changed) == [place]
        assert odd(changed, error=1) == odd(changed, error=0.1, freedom=1) == []
        assert odd(np.append(changed, np.nan)) == [place]
        # The other device has no such position.
        names = {"position": np.tile(np.arange(1, 10), 2), "device": np.repeat(["a", "b"], 9)}
        assert odd(np.append(changed, curve), **names) == [place]
    assert odd(curve + 0.09 * np.sign(off) * (np.arange(1, 10) == 5), error=1e-4) == []


@pytest.mark.parametrize(
    "curve",
    [
        -np.log(np.arange(1.0, 10)),
        -2 * np.log(np.arange(1.0, 10)),
        np.zeros(9),
        -np.log(np.arange(1.0, 10)) - (np.arange(1, 10) > 4),  # a fold
        -np.maximum(np.log(np.arange(1.0, 10) / 4), 0),  # a bend
        np.array([0.0, -1]),
    ],
)
def test_no_position_of_a_curve_that_bends_or_falls_is_odd(curve):
    assert odd(curve) == []


def test_of_two_neighbours_that_rise_one_is_odd():
    assert odd(np.array([0, -2.0, -0.5, -0.7, -0.9])) == [2]  # Those around it are higher.
    assert odd(np.array([-1.0, 0, -0.2, -0.4])) == [1]
    assert odd(np.array([-1.0, 0, -1.2, -1.3])) == [2]
    assert odd(np.array([-1.0, 0, 0.2, 0.1])) == [1, 3]

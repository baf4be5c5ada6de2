"""The slope of a curve in attraction: 0 where its form holds, found where it does not."""

import numpy as np
import pytest

from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.specification import fit_slope


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

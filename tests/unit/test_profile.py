"""The profile likelihood of odds: its known bias, and what the split-panel jackknife removes."""

import numpy as np
import pytest

from twotowers.errors import InputError
from twotowers.fitting.conditional import APART, fit_conditional
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.profile import fit_profile

ODDS = np.array([1, 0.5, 0.25])


def drawn(seed, *, pairs, shown):
    rng = np.random.default_rng(seed)
    pair, factor = np.indices((pairs, 3)).reshape(2, -1)
    logits = rng.normal(-0.5, 1, pairs)[pair] + np.log(ODDS)[factor]
    clicks = rng.binomial(shown, 1 / (1 + np.exp(-logits)))
    return PairCounts.of_arrays(pair, factor, np.full(len(pair), shown), clicks)


def test_pairs_that_are_seen_twice_give_the_square_of_the_odds():
    pair, factor = np.indices((300, 2)).reshape(2, -1)
    clicks = np.random.default_rng(0).random(600) < np.array([0.6, 0.3])[factor]
    counts = PairCounts.of_arrays(pair, factor, np.ones(600), clicks)
    exact = fit_conditional(counts, form="additive")
    assert fit_profile(counts).estimate[1] == pytest.approx(exact.estimate[1] ** 2, rel=1e-6)


def test_the_jackknife_removes_most_of_the_bias():
    counts = drawn(1, pairs=6_000, shown=4)
    off = [
        np.log(curve.estimate / ODDS)[2]
        for curve in (
            fit_profile(counts),
            fit_profile(counts, splits=2, rng=np.random.default_rng(0)),
            fit_conditional(counts, form="additive"),
        )
    ]
    assert off[0] < -0.1
    assert abs(off[1]) < abs(off[0]) / 2
    assert abs(off[2]) < 0.06


def test_with_large_counts_all_are_alike():
    counts = drawn(2, pairs=60, shown=2_000)
    one, other = fit_profile(counts), fit_conditional(counts, form="additive", errors="CR1")
    assert one.estimate == pytest.approx(other.estimate, rel=1e-3)
    assert one.error == pytest.approx(other.error, rel=0.01)


def test_reasons_and_bad_input():
    counts = PairCounts.of_arrays([0, 0, 1, 1], [0, 1, 2, 3], [9] * 4, [5, 2, 4, 3])
    assert fit_profile(counts).reason[3] == APART
    with pytest.raises(InputError, match="rng"):
        fit_profile(counts, splits=1)

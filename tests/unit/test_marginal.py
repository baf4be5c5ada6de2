"""Empirical Bayes: its integral, its limits, its price where relevance follows rank."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, poisson

from twotowers.errors import InputError
from twotowers.fitting import marginal
from twotowers.fitting.conditional import UNCLICKED, fit_conditional
from twotowers.fitting.marginal import _Marginal, fit_marginal
from twotowers.fitting.pair_counts import PairCounts

EXAMINATION = np.array([1, 0.6, 0.4, 0.3])


def drawn(seed, *, pairs=600, shown=3, follows=False):
    rng = np.random.default_rng(seed)
    attraction = rng.beta(1, 6, pairs)
    pair = np.repeat(np.arange(pairs), shown)
    place = (np.argsort(np.argsort(-attraction)) / pairs * 4)[pair] if follows else 1.5
    factor = np.clip(np.round(place + rng.normal(0, 1.2, len(pair))), 0, 3).astype(int)
    clicks = rng.random(len(pair)) < EXAMINATION[factor] * attraction[pair]
    return PairCounts.of_arrays(
        pair, factor, np.ones(len(pair)), clicks, query=pair // 3, factors=4, every=True
    )


def test_the_likelihood_is_the_integral_and_its_scores_are_its_slopes():
    counts = PairCounts.of_arrays([0, 0, 1], [0, 1, 1], [5, 9, 4], [2, 1, 0], every=True)
    problem = _Marginal(counts, np.array([1]))

    def integral(ratio, shape, rate):
        law = gamma(shape, scale=1 / rate)
        one, other = (
            quad(lambda a, c=c, n=n: law.pdf(a) * np.prod(poisson.pmf(c, np.array(n) * a)), 0, 9)[0]
            for c, n in (([2, 1], [5, 9 * ratio]), ([0], [4 * ratio]))
        )
        return np.log(one * other)

    points = [(0.5, 2.0, 6.0), (0.8, 0.7, 9.0)]
    ours = [problem.likelihood(np.log(point)) for point in points]
    assert ours[0] - ours[1] == pytest.approx(integral(*points[0]) - integral(*points[1]))
    at = np.log(points[0])
    for number, step in enumerate(np.eye(3) * 1e-5):
        slope = (problem.likelihood(at + step) - problem.likelihood(at - step)) / 2e-5
        assert problem.scores(at).sum(0)[number] == pytest.approx(slope, rel=1e-5)
        ahead, behind = (problem.scores(at + sign * step).sum(0) for sign in (1, -1))
        assert -problem.information(at)[number] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)


def test_a_prior_that_says_nothing_gives_the_conditional_estimate():
    counts = drawn(1)
    curve = fit_conditional(counts)
    problem = _Marginal(counts, np.arange(1, 4))
    # Shape and rate near 0.
    parameters = np.concatenate([np.log(curve.estimate[1:]), np.log([1e-9, 1e-9])])
    assert problem.scores(parameters).sum(0)[:3] == pytest.approx(0, abs=1e-5)


def test_its_errors_are_right_and_shorter_if_relevance_is_independent():
    off, shorter = [], []
    for seed in range(30):
        counts = drawn(seed)
        curve, conditional = fit_marginal(counts), fit_conditional(counts)
        off.append(np.log(curve.estimate / EXAMINATION)[1:] / curve.error[1:])
        shorter.append(curve.error[1:] / conditional.error[1:])
    assert 0.6 < np.mean(np.square(off)) < 1.5
    assert np.nanmedian(shorter) < 0.9


def test_it_is_biased_if_relevance_follows_rank():
    plain, conditional = [], []
    for seed in range(4):
        counts = drawn(seed, pairs=4_000, follows=True)
        plain.append(np.log(fit_marginal(counts).estimate / EXAMINATION)[3])
        conditional.append(np.log(fit_conditional(counts).estimate / EXAMINATION)[3])
    assert np.mean(plain) < -0.3
    assert abs(np.mean(conditional)) < 0.1


def test_positions_without_clicks_have_a_reason():
    counts = PairCounts.of_arrays([0, 0, 0], [0, 1, 2], [9] * 3, [5, 0, 2], every=True)
    curve = fit_marginal(counts)
    assert curve.reason[1] == UNCLICKED
    assert np.isnan(curve.estimate[1])
    none = fit_marginal(PairCounts.of_arrays([0, 0], [0, 1], [9] * 2, [0, 3], every=True))
    assert none.reason[1] == UNCLICKED


def test_rare_clicks_give_the_estimate_of_frequent_ones():
    rng = np.random.default_rng(1)
    pair, factor = np.repeat(np.arange(400), 2), np.tile([0, 1], 400)
    clicks = rng.poisson(10 * rng.gamma(2, 0.5, 400)[pair] * np.array([1, 0.5])[factor])
    curves = [
        fit_marginal(PairCounts.of_arrays(pair, factor, np.full(800, shown), clicks))
        for shown in (1e2, 1e8, 1e12)
    ]
    assert curves[0].low[1] < 0.5 < curves[0].high[1] < 0.6
    for each in curves[1:]:
        assert each.estimate == pytest.approx(curves[0].estimate, rel=1e-6)
        assert each.error == pytest.approx(curves[0].error, rel=1e-5)


def test_no_optimum_is_said(monkeypatch):
    monkeypatch.setattr(marginal, "ITERATIONS", 1)
    with pytest.raises(InputError, match="found no optimum"):
        fit_marginal(drawn(1))

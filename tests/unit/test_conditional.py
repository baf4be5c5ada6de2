"""Conditional estimates: closed forms, whole likelihoods, plain sandwiches, disconnected logs."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import nchypergeom_fisher

from twotowers.fitting import conditional
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.conditional_logit import logit_moments
from twotowers.fitting.curves import ALONE, inverse_root, laplacian_of
from twotowers.fitting.newton import fit_embedding
from twotowers.fitting.pair_counts import PairCounts


def drawn(seed=0, *, pairs=300, factors=5, rate=0.3, shown=4, per_query=5):
    """A small log of a position-based user: pairs at random positions."""
    rng = np.random.default_rng(seed)
    examination = np.geomspace(1, 0.2, factors)
    pair = np.repeat(np.arange(pairs), shown)
    factor = rng.integers(factors, size=len(pair))
    attraction = rng.beta(2, 2 / rate - 2, pairs)
    clicks = rng.random(len(pair)) < examination[factor] * attraction[pair]
    counts = PairCounts.of_arrays(
        pair, factor, np.ones(len(pair)), clicks, query=pair // per_query, factors=factors
    )
    return counts, examination


def by_clicks(curve):
    """[K] errors by the information."""
    return np.nan_to_num(np.sqrt(4 / curve.swaps))


def test_two_positions_and_one_pair_are_a_ratio_of_rates():
    counts = PairCounts.of_arrays([0, 0], [0, 1], [50, 200], [20, 30])
    curve = fit_conditional(counts)
    assert curve.estimate == pytest.approx([1, (30 / 200) / (20 / 50)])
    # The error of a log-ratio of two Poisson rates, since one query says nothing of its own.
    assert curve.error == pytest.approx([0, np.sqrt(1 / 30 + 1 / 20)])
    assert curve.swaps[1] == pytest.approx(4 / (1 / 30 + 1 / 20))


def test_matched_pairs_are_the_ratio_of_their_clicks():
    rng = np.random.default_rng(1)
    clicks = rng.binomial(3, [0.6, 0.3], size=(400, 2))
    pair, factor = np.indices(clicks.shape)
    counts = PairCounts.of_arrays(
        pair.ravel(), factor.ravel(), np.full(clicks.size, 3), clicks.ravel()
    )
    curve = fit_conditional(counts)
    total = clicks.sum(0)
    ratio = total[1] / total[0]
    assert curve.estimate[1] == pytest.approx(ratio)
    residual = clicks[:, 1] - clicks.sum(1) * total[1] / total.sum()
    information = total.prod() / total.sum()
    assert curve.error[1] == pytest.approx(np.sqrt((residual**2).sum()) / information)


def test_it_is_the_poisson_fit_with_an_effect_per_pair():
    counts, _ = drawn(2, pairs=60)
    # A pair without clicks has its effect at -inf, so it is left out.
    counts = counts.where()
    pairs, factors = len(counts.cluster), counts.factors

    def loss(parameters):
        attraction, theta = parameters[:pairs], np.append(0, parameters[pairs:])
        log_mean = attraction[counts.pair] + theta[counts.factor]
        return (counts.impressions * np.exp(log_mean) - counts.clicks * log_mean).sum()

    found = minimize(loss, np.full(pairs + factors - 1, -1.0), tol=1e-12, options={"maxiter": 9999})
    curve = fit_conditional(counts)
    assert np.log(curve.estimate[1:]) == pytest.approx(found.x[pairs:], abs=1e-4)


def influences(counts, curve):
    """[clusters, K] Q s_g, one query after the other, with loops."""
    factors, rows_of = counts.factors, counts.where()
    theta, laplacian, scores = np.log(curve.estimate), np.zeros((factors, factors)), {}
    shares = {}
    for pair in range(len(rows_of.cluster)):
        rows = rows_of.pair == pair
        n, c = np.zeros(factors), np.zeros(factors)
        n[rows_of.factor[rows]], c[rows_of.factor[rows]] = (
            rows_of.impressions[rows],
            rows_of.clicks[rows],
        )
        p = n * np.exp(theta) / (n @ np.exp(theta))
        own = c.sum() * (np.diag(p) - np.outer(p, p))
        laplacian += own
        query = rows_of.cluster[pair]
        scores[query] = scores.get(query, 0) + c - c.sum() * p
        shares[query] = shares.get(query, 0) + own
    return laplacian, [scores[q] for q in sorted(scores)], [shares[q] for q in sorted(shares)]


def test_clustered_errors_are_those_of_plain_loops(monkeypatch):
    monkeypatch.setattr("twotowers.fitting.curves.LEVERAGE", 0)
    counts, _ = drawn(5, pairs=60)
    curve = fit_conditional(counts)
    laplacian, scores, shares = influences(counts, curve)
    assert curve.information == pytest.approx(laplacian, abs=1e-6)
    covariance = np.zeros_like(laplacian)
    for score, share in zip(scores, shares, strict=True):
        step = np.linalg.pinv(laplacian - share) @ score  # the one without this query
        covariance += np.outer(step, step)
    contrast = np.eye(5)
    contrast[:, 0] -= 1
    expected = np.sqrt(np.diag(contrast @ covariance @ contrast.T))
    assert curve.error == pytest.approx(expected, rel=1e-4)


def test_intervals_cover():
    inside = []
    for seed in range(80):
        counts, truth = drawn(seed)
        curve = fit_conditional(counts)
        inside.append((curve.low <= truth) & (truth <= curve.high))
        assert curve.low[0] == curve.high[0] == 1  # the reference is 1, not somewhere in [0, 1]
    assert 0.92 <= np.mean(np.array(inside)[:, 1:]) <= 0.98


def test_an_effective_number_of_queries_gives_the_degrees_of_freedom():
    # Nine queries alike: nine effective queries.
    pair, factor = np.indices((9, 2)).reshape(2, -1)
    clicks = np.array([[4, 2]] * 9).ravel()
    curve = fit_conditional(PairCounts.of_arrays(pair, factor, np.full(18, 10), clicks))
    assert curve.queries[1] == pytest.approx(9)


def links_of_one_query(rng, together: int, alone: int, decay: float) -> PairCounts:
    """Some queries together link the first two positions. Each of some others alone links its own
    two neighbouring positions, so that all positions are a chain."""
    first = np.concatenate([np.zeros(together, int), range(1, alone + 1)])
    factor = (first[:, None] + [0, 1]).ravel()
    pair, shown = np.repeat(np.arange(len(first)), 2), np.full(len(factor), 2_000)
    clicks = rng.binomial(shown, 0.5 * decay**factor)
    return PairCounts.of_arrays(pair, factor, shown, clicks, factors=alone + 2)


def test_what_one_query_alone_links_has_its_error_by_clicks_and_a_doubt():
    counts = links_of_one_query(np.random.default_rng(3), 60, 6, decay=0.8)
    curve = fit_conditional(counts)
    assert curve.error[2:] == pytest.approx(by_clicks(curve)[2:], rel=0.1)
    assert curve.queries[7] > 4
    assert curve.reason[7] == ALONE
    assert curve.reason[1] == ""


def test_positions_that_nothing_links_have_a_reason_and_no_number():
    counts = PairCounts.of_arrays(
        pair=[0, 0, 1, 1, 2, 2, 3, 4, 4],
        factor=[0, 1, 2, 3, 0, 4, 5, 1, 0],
        impressions=[10] * 9,
        clicks=[5, 2, 5, 5, 0, 0, 1, 2, 3],
        factors=7,
    )
    curve = fit_conditional(counts)
    assert curve.estimate[1] == pytest.approx(4 / 8)
    assert np.isnan(curve.estimate[2:]).all()
    assert np.isnan([curve.low[2:], curve.high[2:], curve.error[2:]]).all()
    assert curve.reason[2] == curve.reason[3] == curve.reason[5] == conditional.APART
    assert curve.reason[4] == conditional.UNCLICKED
    assert curve.reason[6] == conditional.NEVER


def test_clicks_on_one_side_only_give_no_ratio():
    counts = PairCounts.of_arrays([0, 0, 1, 1], [0, 1, 0, 2], [10] * 4, [5, 0, 5, 3])
    curve = fit_conditional(counts)
    assert curve.estimate[2] == pytest.approx(0.6)
    assert curve.reason[1] == conditional.ORDERED
    assert np.isnan([curve.estimate[1], curve.low[1], curve.high[1]]).all()
    above = fit_conditional(counts, reference=1)
    assert above.reason[0] == conditional.ORDERED
    assert np.isnan(above.estimate[0])


def enumerated(n, c, theta):
    """The conditional logit of one pair, over all ways in which its clicks can fall."""
    ways = [way for way in product(*(range(each + 1) for each in n)) if sum(way) == sum(c)]
    weight = np.array(
        [
            np.prod(
                [comb(each, k) * np.exp(k * t) for each, k, t in zip(n, way, theta, strict=True)]
            )
            for way in ways
        ]
    )
    weight /= weight.sum()
    ways = np.array(ways)
    mean = weight @ ways
    return mean, (ways.T * weight) @ ways - np.outer(mean, mean), weight[ways.tolist().index(c)]


@pytest.mark.parametrize(
    ("n", "c"), [([1, 1], [1, 0]), ([3, 2, 1], [1, 1, 1]), ([7, 1, 5], [6, 1, 0]), ([9, 8], [0, 1])]
)
def test_the_conditional_logit_is_exact(n, c):
    theta = np.array([0.3, -1.2, 2.0])[: len(n)]
    rows_of = PairCounts.of_arrays([0] * len(n), range(len(n)), n, c)
    moments, other = logit_moments(rows_of, theta), logit_moments(rows_of, theta * 0)
    mean, covariance, chance = enumerated(n, c, theta)
    assert moments.expected == pytest.approx(mean, rel=1e-10)
    assert moments.information == pytest.approx(covariance, abs=1e-10)
    ratio = np.log(chance) - np.log(enumerated(n, c, theta * 0)[2])
    assert moments.likelihood - other.likelihood == pytest.approx(ratio, abs=1e-10)


def test_large_counts_need_few_terms_and_stay_exact():
    # Two cells with as many impressions: the noncentral hypergeometric law.
    n, c, odds = np.array([40_000, 30_000]), np.array([9_000, 5_000]), 0.6
    rows_of = PairCounts.of_arrays([0, 0], [0, 1], n, c)
    law = nchypergeom_fisher(n.sum(), n[0], c.sum(), 1 / odds)
    moments = logit_moments(rows_of, np.log([1, odds]))
    assert moments.expected[0] == pytest.approx(law.mean(), rel=1e-8)
    assert moments.information[0, 0] == pytest.approx(law.var(), rel=1e-6)


def test_the_additive_form_is_right_where_pairs_are_seen_twice():
    rng = np.random.default_rng(8)
    pair = np.repeat(np.arange(20_000), 2)
    factor = rng.integers(2, size=len(pair))
    logits = rng.normal(size=20_000)[pair] + np.log([1, 0.3])[factor]
    clicks = rng.random(len(pair)) < 1 / (1 + np.exp(-logits))
    counts = PairCounts.of_arrays(pair, factor, np.ones(len(pair)), clicks, factors=2)
    curve = fit_conditional(counts, form="additive")
    assert curve.low[1] < 0.3 < curve.high[1]
    # The fit with an effect per pair estimates the square (Andersen 1973).
    shown, hits = np.zeros((2, len(counts.cluster), 2))
    shown[counts.pair, counts.factor], hits[counts.pair, counts.factor] = 1, counts.clicks
    free = fit_embedding(shown, hits)
    assert np.exp(free.bias[1] - free.bias[0]) == pytest.approx(curve.estimate[1] ** 2, rel=1e-6)


def test_odds_are_ordered_by_impressions_without_click():
    # Every impression under the second factor was clicked: its odds are infinite, its ratio is not.
    counts = PairCounts.of_arrays([0, 0], [0, 1], [10, 4], [5, 4])
    assert fit_conditional(counts).estimate[1] == pytest.approx(2)
    assert fit_conditional(counts, form="additive").reason[1] == conditional.ORDERED


@pytest.mark.parametrize("scale", [1e4, 1e7, 1e10])
def test_swaps_that_are_few_beside_the_impressions_of_their_pair(scale):
    """Closed form: of each pair a cell with few clicks beside a cell with very many."""
    counts = PairCounts.of_arrays(
        [0, 0, 1, 1], [0, 1, 1, 2], [10 * scale, 4, 7 * scale, 9], [4 * scale, 2, 2 * scale, 3]
    )
    curve = fit_conditional(counts)
    ratio = np.array([1, (2 / 4) / (4 / 10), (3 / 9) / (2 / 7)])
    assert curve.estimate == pytest.approx(np.cumprod(ratio), rel=1e-9)
    variance = np.array([0, 1 / 2 + 1 / (4 * scale), 1 / 3 + 1 / (2 * scale)])
    assert by_clicks(curve) == pytest.approx(np.sqrt(np.cumsum(variance)), rel=1e-9)


def test_inverses_of_laplacians_keep_their_digits():
    """Beside Gaussian elimination in fractions, weights from 1 to 1e14."""
    rng = np.random.default_rng(5)
    weight = np.triu(np.floor(10 ** rng.uniform(0, 14, (7, 7))) * (rng.random((7, 7)) < 0.6), 1)
    laplacian = laplacian_of(weight + weight.T)
    root, inverse = inverse_root(laplacian, 2)
    kept = [0, 1, 3, 4, 5, 6]
    rows = [[Fraction(int(laplacian[i, j])) for j in kept] for i in kept]
    for row, i in zip(rows, kept, strict=True):
        row[kept.index(i)] = sum(Fraction(int(each)) for each in weight[i] + weight[:, i])
    rows = [[*row, *(Fraction(int(i == j)) for j in range(6))] for i, row in enumerate(rows)]
    for i in range(6):
        rows[i] = [each / rows[i][i] for each in rows[i]]
        for j in set(range(6)) - {i}:
            rows[j] = [b - rows[j][i] * a for a, b in zip(rows[i], rows[j], strict=True)]
    expected = np.array([[float(each) for each in row[6:]] for row in rows])
    assert (root @ root.T)[np.ix_(kept, kept)] == pytest.approx(expected, rel=1e-13)
    assert inverse @ root == pytest.approx(np.eye(6), abs=1e-6)
    assert not root[2].any()


def test_blocks_of_the_elimination_are_one_elimination(monkeypatch):
    weight = np.random.default_rng(6).random((11, 11))
    laplacian = laplacian_of(weight + weight.T)
    whole = inverse_root(laplacian, 4)[0]
    monkeypatch.setattr("twotowers.fitting.curves.BLOCK", 3)
    assert inverse_root(laplacian, 4)[0] == pytest.approx(whole, rel=1e-13)
    pinv = np.linalg.pinv(laplacian)
    contrast = np.eye(11) - np.eye(11)[4]
    assert whole @ whole.T == pytest.approx(contrast @ pinv @ contrast.T, rel=1e-9)


def test_odds_of_two_cells_are_fisher_s_whatever_their_counts():
    """All logs of two cells with up to 5 impressions: clicks given their sum are as expected."""
    cells = [(n, c) for n in range(1, 6) for c in range(n + 1)]
    for (n, c), (m, d) in product(cells, cells):
        counts = PairCounts.of_arrays([0, 0], [0, 1], [n, m], [c, d])
        curve = fit_conditional(counts, form="additive")
        finite = max(0, c + d - n) < d < min(m, c + d)  # not at an end of what d may be
        assert (curve.estimate[1] > 0) == finite
        if finite:
            law = nchypergeom_fisher(n + m, m, c + d, curve.estimate[1])
            assert law.mean() == pytest.approx(d, abs=1e-6)


def test_odds_of_very_rare_clicks_are_their_ratio():
    rng = np.random.default_rng(0)
    pair, factor = np.indices((200, 3)).reshape(2, -1)
    clicks = rng.poisson(5 * rng.uniform(size=200)[pair] * np.array([1, 0.5, 0.2])[factor])
    counts = PairCounts.of_arrays(pair, factor, np.full(600, 1e9), clicks)
    odds, ratio = (fit_conditional(counts, form=form) for form in ("additive", "product"))
    assert odds.estimate == pytest.approx(ratio.estimate, rel=1e-6)


@pytest.mark.parametrize("shown", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("moved", [1, 10, 200])
def test_very_few_swaps_beside_very_many_displays_have_an_optimum(shown, moved):
    rng = np.random.default_rng(int(moved))
    pair = np.repeat(np.arange(40), 2)
    factor = (pair + np.tile([0, 1], 40)) % 4
    displays = np.tile([shown, moved], 40)
    clicks = rng.binomial(displays.astype(int), rng.uniform(0.1, 0.9, 40)[pair] / (1 + factor))
    curve = fit_conditional(PairCounts.of_arrays(pair, factor, displays, clicks, query=pair))
    distance = np.log(curve.estimate[1:] * np.arange(2, 5)) / curve.error[1:]
    assert np.abs(distance).max() < 5

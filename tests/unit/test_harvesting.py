"""Harvesting: published formulas, the likelihood of All Pairs, errors by resampling queries."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.unit.test_conditional import links_of_one_query
from twotowers.fitting.conditional import APART, UNCLICKED
from twotowers.fitting.curves import ALONE
from twotowers.fitting.harvesting import harvest
from twotowers.fitting.pair_counts import PairCounts

EXAMINATION = np.array([1, 0.6, 0.4, 0.3])


def drawn(seed=0, *, pairs=800, shown=6, factors=4, per_query=4):
    rng = np.random.default_rng(seed)
    pair = np.repeat(np.arange(pairs), shown)
    factor = rng.integers(factors, size=len(pair))
    clicks = rng.random(len(pair)) < EXAMINATION[factor] * rng.beta(2, 3, pairs)[pair]
    return pair, factor, clicks, pair // per_query


def counted(pair, factor, clicks, query):
    return PairCounts.of_arrays(pair, factor, np.ones(len(pair)), clicks, query=query, factors=4)


def sums(counts):
    """c_kl and N_kl by loops."""
    clicks, pairs = np.zeros((2, 4, 4))
    for pair in range(len(counts.cluster)):
        rows = np.flatnonzero(counts.pair == pair)
        for one in rows:
            for other in rows:
                if one != other:
                    k, l = counts.factor[one], counts.factor[other]  # noqa: E741
                    clicks[k, l] += counts.clicks[one] / counts.impressions[one]
                    pairs[k, l] += 1
    return clicks, pairs


def test_pivot_and_chain_are_the_published_ratios():
    counts = counted(*drawn(1))
    clicks, _ = sums(counts)
    pivot = [1, *(clicks[k, 0] / clicks[0, k] for k in (1, 2, 3))]
    assert harvest(counts, "pivot_one").estimate == pytest.approx(pivot)
    chain = np.cumprod([1, *(clicks[k + 1, k] / clicks[k, k + 1] for k in (0, 1, 2))])
    assert harvest(counts, "adjacent_chain").estimate == pytest.approx(chain)
    from_third = harvest(counts, "adjacent_chain", reference=2)
    assert from_third.estimate == pytest.approx(chain / chain[2])
    assert from_third.error[2] == 0
    assert from_third.error[0] == pytest.approx(harvest(counts, "adjacent_chain").error[2])


@pytest.mark.parametrize("collision", [False, True])
def test_all_pairs_is_the_maximum_of_its_likelihood(collision):
    counts = counted(*drawn(2))
    clicks, pairs = sums(counts)
    links = {}
    number = np.zeros((4, 4), int)
    for k, other in np.ndindex(4, 4):
        name = (k + 1) * (other + 1) if collision else (min(k, other), max(k, other))
        number[k, other] = links.setdefault(name, len(links))
    off = ~np.eye(4, dtype=bool)

    def loss(parameters):
        # Sigmoids, as published: examination and r are at most 1.
        chance = 1 / (1 + np.exp(-parameters))
        p = (chance[:4, None] * chance[4:][number])[off]
        return -(clicks[off] * np.log(p) + (pairs - clicks)[off] * np.log1p(-p)).sum()

    found = minimize(loss, np.zeros(4 + len(links)), tol=1e-10, options={"maxiter": 5_000})
    examination = 1 / (1 + np.exp(-found.x[:4]))
    curve = harvest(counts, "all_pairs", collision=collision)
    assert curve.estimate == pytest.approx(examination / examination[0], rel=1e-3)


def test_the_collision_joins_positions_of_one_product():
    # With six positions, (1, 6) and (2, 3) share a parameter: estimates differ then, and only then.
    rng = np.random.default_rng(3)
    examination = np.append(EXAMINATION, [0.2, 0.1])
    pair = np.repeat(np.arange(500), 6)
    factor = rng.integers(6, size=len(pair))
    clicks = rng.random(len(pair)) < 0.8 * examination[factor]
    counts = PairCounts.of_arrays(pair, factor, np.ones(len(pair)), clicks, factors=6)
    free, published = (harvest(counts, collision=each).estimate for each in (False, True))
    assert abs(free - published).max() > 1e-3
    four = counted(*drawn(4))
    assert harvest(four, collision=True).estimate == pytest.approx(harvest(four).estimate, rel=1e-6)


@pytest.mark.parametrize("estimator", ["all_pairs", "adjacent_chain", "pivot_one"])
def test_errors_are_those_of_resampled_queries(estimator):
    pair, factor, clicks, query = drawn(5)
    curve = harvest(counted(pair, factor, clicks, query), estimator)
    rng = np.random.default_rng(0)
    rows = np.split(np.arange(len(query)), np.flatnonzero(np.diff(query)) + 1)
    logs = []
    for _ in range(150):
        chosen = rng.integers(len(rows), size=len(rows))
        again = np.concatenate([rows[each] for each in chosen])
        copy = np.repeat(np.arange(len(rows)), [len(rows[each]) for each in chosen])
        counts = counted(pair[again] + 10_000 * copy, factor[again], clicks[again], copy)
        logs.append(np.log(harvest(counts, estimator).estimate))
    assert curve.error[1:] == pytest.approx(np.std(logs, 0)[1:], rel=0.2)


@pytest.mark.parametrize("estimator", ["all_pairs", "adjacent_chain", "pivot_one"])
def test_intervals_cover(estimator):
    curves = [harvest(counted(*drawn(seed, pairs=400)), estimator) for seed in range(100)]
    inside = [(curve.low <= EXAMINATION) & (curve.high >= EXAMINATION) for curve in curves]
    assert 0.92 <= np.mean(inside, 0)[1:].mean() <= 0.98


def test_click_rates_are_naive():
    pair, factor, clicks, query = drawn(6)
    curve = harvest(counted(pair, factor, clicks, query), "naive")
    rates = np.bincount(factor, clicks) / np.bincount(factor)
    assert curve.estimate == pytest.approx(rates / rates[0])
    assert curve.low[0] == curve.high[0] == 1


def test_what_is_not_linked_has_a_reason():
    counts = PairCounts.of_arrays(
        [0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 0, 2], [9] * 6, [5, 2, 4, 3, 0, 0]
    )
    for estimator in ("all_pairs", "adjacent_chain", "pivot_one"):
        curve = harvest(counts, estimator)
        assert curve.estimate[1] == pytest.approx(0.4)
        assert np.isnan(curve.estimate[2])
        assert curve.reason[2] == UNCLICKED
    apart = PairCounts.of_arrays([0, 0, 1, 1], [0, 1, 2, 3], [9] * 4, [5, 2, 4, 3])
    assert [harvest(apart, each).reason[3] for each in ("all_pairs", "pivot_one")] == [APART] * 2


@pytest.mark.parametrize("clicks", [[5, 0], [0, 5]])
@pytest.mark.parametrize("estimator", ["adjacent_chain", "pivot_one"])
def test_clicks_under_one_factor_alone_link_nothing(estimator, clicks):
    curve = harvest(PairCounts.of_arrays([0, 0], [0, 1], [9, 9], clicks), estimator)
    assert np.isnan(curve.estimate[1])
    assert curve.reason[1] == UNCLICKED


def test_all_pairs_where_every_impression_was_clicked():
    counts = PairCounts.of_arrays([0, 0, 1, 1], [0, 1, 0, 1], [5] * 4, [5] * 4)
    assert harvest(counts, "all_pairs").estimate.tolist() == pytest.approx([1, 1])


@pytest.mark.parametrize("estimator", ["all_pairs", "adjacent_chain", "pivot_one"])
def test_queries_that_agree_exactly_are_no_reason_to_be_sure(estimator):
    counts = PairCounts.of_arrays([0, 0, 1, 1], [0, 1, 0, 1], [90] * 4, [30, 10, 60, 20])
    assert "effective queries, fewer than 4" in harvest(counts, estimator).reason[1]


@pytest.mark.parametrize("estimator", ["all_pairs", "adjacent_chain"])
def test_what_one_query_alone_links_has_its_error_by_clicks(estimator):
    counts = links_of_one_query(np.random.default_rng(0), 40, 18, decay=0.9)
    curve = harvest(counts, estimator)
    links = (1 / counts.clicks.reshape(-1, 2)).sum(1)
    by_clicks = np.cumsum([links[:40].sum() / 40**2, *links[40:]])
    assert curve.error[2:] == pytest.approx(np.sqrt(by_clicks[1:]), rel=0.02)
    assert curve.swaps[1:] == pytest.approx(4 / by_clicks, rel=0.02)
    assert (curve.reason[2:] == ALONE).all()
    assert curve.reason[1] == ""
    without = harvest(counts.where(counts.pair >= 40), estimator, reference=1)
    assert "0 effective queries" in without.reason[19]
    assert without.error[19] == pytest.approx(np.sqrt(links[40:].sum()))

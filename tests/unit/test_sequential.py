"""Examination from displays that follow each other; the test whether positions follow clicks."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from benchmarks.validate.feedback import simulate
from twotowers.analysis.feedback import LEVEL, moves_after_clicks
from twotowers.fitting.sequential import Displays, fit_sequential

EXAMINATION = np.array([1.0, 0.5, 0.2])


def place_after(clicks: tuple[int, ...], factors: tuple[int, ...]) -> int:
    """A ranker that learns: the pair moves up after a click, and down without one."""
    return max(factors[-1] - 1, 0) if clicks[-1] else min(factors[-1] + 1, 2)


def paths(attraction: float, start: int, steps: int):
    """Every path of clicks with its factors and its probability."""
    for clicks in product((0, 1), repeat=steps):
        factors, chance = (start,), 1.0
        for step, click in enumerate(clicks):
            own = attraction * EXAMINATION[factors[step]]
            chance *= own if click else 1 - own
            factors = (*factors, place_after(clicks[: step + 1], factors))
        yield clicks, factors[:steps], chance


@pytest.mark.parametrize("attraction", [0.1, 0.7])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_moments_have_mean_zero_under_feedback_by_enumeration(attraction, start):
    moments, total = np.zeros(3), 0.0
    for clicks, factors, chance in paths(attraction, start, 6):
        scaled = np.array(clicks) / EXAMINATION[list(factors)]
        np.add.at(moments, list(factors[:-1]), chance * (scaled[:-1] - scaled[1:]))
        total += chance
    assert total == pytest.approx(1)
    np.testing.assert_allclose(moments, 0, atol=1e-12)


def test_a_log_that_has_its_expectation_gives_the_truth():
    # As many pairs walk each path as its probability says, up to rounding.
    rows: list[tuple[int, int, int]] = []
    for attraction, start in product((0.3, 0.6), range(3)):
        for clicks, factors, chance in paths(attraction, start, 4):
            for _ in range(round(4000 * chance)):
                pair = rows[-1][0] + 1 if rows else 0
                rows += [(pair, *each) for each in zip(factors, clicks, strict=True)]
    pair, factor, click = np.array(rows).T
    curve = fit_sequential([Displays.of_rows(pair, factor, click, query=pair)])
    np.testing.assert_allclose(curve.estimate, EXAMINATION, rtol=0.01)
    assert (curve.reason == "").all()


def test_the_order_of_time_counts_and_that_of_pairs_does_not():
    log, _ = simulate(np.random.default_rng(2), rounds=20, feedback=1.0)
    columns = log["pair"], log["factor"], log["click"]
    curve = fit_sequential([Displays.of_rows(*columns, query=log["query"])])
    grouped = np.argsort(log["query"], kind="stable")
    alike = fit_sequential(
        [Displays.of_rows(*(each[grouped] for each in columns), query=log["query"][grouped])]
    )
    np.testing.assert_allclose(curve.estimate, alike.estimate, rtol=1e-9)
    np.testing.assert_allclose(curve.error, alike.error, rtol=1e-6)
    backwards = fit_sequential(
        [Displays.of_rows(*(each[::-1] for each in columns), query=log["query"][::-1])]
    )
    assert abs(backwards.estimate / curve.estimate - 1).max() > 0.05


def test_errors_by_queries_and_users_are_those_of_the_plain_formula():
    log, _ = simulate(np.random.default_rng(3), queries=40, rounds=15, users=12, spread=0.4)
    query, user = log["query"], log["user"]
    displays = Displays.of_rows(log["pair"], log["factor"], log["click"], query=query, user=user)
    curve = fit_sequential([displays])
    # Displays one by one, in dense matrices.
    first, w = displays.firsts, 1 / curve.estimate
    scaled = w[displays.factor] * displays.click
    centre = np.array([scaled[displays.pair == each].mean() for each in displays.pair])
    at = np.eye(6)[displays.factor[first]]
    sums = np.zeros((len(displays.pair), 6))
    np.add.at(sums, first, (scaled - centre)[first, None] * at)
    np.add.at(sums, first + 1, -(scaled - centre)[first + 1, None] * at)

    def cross(cluster):
        own = np.array([sums[cluster == each].sum(0) for each in np.unique(cluster)])
        return own.T @ own

    by_query = cross(displays.query)
    slope = np.zeros((6, 6))
    np.add.at(slope, (displays.factor[first],) * 2, displays.click[first])
    places = displays.factor[first], displays.factor[first + 1]
    np.add.at(slope, places, -displays.click[first + 1])
    design, weight = slope[:, 1:], np.linalg.inv(by_query)
    bread = np.linalg.inv(design.T @ weight @ design) @ design.T @ weight / w[1:, None]
    both = cross(displays.query * 1000 + displays.user)
    middle = by_query + cross(displays.user) - both
    expected = np.diag(bread @ middle @ bread.T)
    least = np.maximum(
        np.diag(bread @ by_query @ bread.T), np.diag(bread @ cross(displays.user) @ bread.T)
    )
    np.testing.assert_allclose(curve.error[1:] ** 2, np.maximum(expected, least), rtol=1e-4)


def test_factors_that_nothing_links_have_no_estimate():
    # Pairs 0 and 1 move between the first two factors, pair 2 stays at the third.
    pair = np.repeat([0, 1, 2], 8)
    factor = np.concatenate([[0, 1] * 8, [2] * 8])
    click = np.tile([1, 1, 0, 0], 6)
    names = pd.DataFrame({"position": [1, 2, 3, 4]})
    curve = fit_sequential([Displays.of_rows(pair, factor, click, query=pair, names=names)])
    assert np.isfinite(curve.estimate[:2]).all()
    assert np.isnan(curve.estimate[2:]).all()
    assert "no document was shown both here" in curve.reason[2]
    assert curve.reason[3] == "never shown"


@pytest.mark.parametrize("ranker", ["rates", "drift", "walk"])
def test_rankers_that_do_not_learn_raise_no_alarm(ranker):
    rejected = []
    for draw in range(20):
        log, _ = simulate(np.random.default_rng(draw), rounds=15, ranker=ranker)
        displays = Displays.of_rows(log["pair"], log["factor"], log["click"], query=log["query"])
        rejected.append(moves_after_clicks([displays]).p < LEVEL)
    assert sum(rejected) <= 4  # P(more) = .003 at 5 %

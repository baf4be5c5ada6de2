"""Standard errors and intervals of fitted probabilities, against closed forms and other ways."""

import numpy as np
import pytest
from scipy.optimize import brentq

from tests.unit.test_fit_pages import HIDDEN, LENGTH, PAIRS, SEEN, log_of, statistics_of
from twotowers.fitting import information
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.information import intervals
from twotowers.fitting.prior import NOTHING, Prior
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.fitting.steps import EMState
from twotowers.models.document_rate import DocumentRate

STEP = 1e-4


def by_differences(problem, best, free):
    """Standard errors by second differences of the likelihood of the probabilities themselves."""
    moves = STEP * np.eye(len(best))[free]

    def value(vector):
        return problem.objective(vector)

    hessian = np.zeros((len(free), len(free)))
    for i, one in enumerate(moves):
        for j, other in enumerate(moves[: i + 1]):
            corners = (
                value(best + one + other)
                - value(best + one - other)
                - value(best - one + other)
                + value(best - one - other)
            )
            hessian[i, j] = hessian[j, i] = corners / (4 * STEP**2)
    return np.sqrt(np.diag(np.linalg.inv(-hessian)))


@pytest.mark.parametrize("name", HIDDEN)
def test_errors_are_those_of_a_numeric_hessian(name):
    _, statistics = statistics_of(HIDDEN[name], 4000)
    fitted = fit_em(statistics, tolerance=1e-14)
    found = intervals(statistics, fitted.parameters)
    best = np.concatenate(list(fitted.parameters.values()))
    error = np.concatenate([found[part].error for part in fitted.parameters])
    free = np.flatnonzero((best > 0.01) & (best < 0.99))
    problem = EMState(statistics)
    best = np.where(np.isnan(best), 0.5, best)
    np.testing.assert_allclose(error[free], by_differences(problem, best, free), rtol=1e-3)
    assert len(free) >= 0.6 * (~np.isnan(best)).sum()


@pytest.mark.parametrize("name", SEEN)
def test_errors_of_what_is_seen_are_those_of_rates(name):
    _, _, pair, clicks, where = log_of(SEEN[name], 700)
    model = SEEN[name]
    statistics = Statistics.of_pages(model, distinct_pages(pair, clicks, where, pairs=PAIRS + 1))
    fitted = fit_counts(statistics)
    for part, each in intervals(statistics, fitted.parameters).items():
        rate, trials = fitted.parameters[part], fitted.trials[part]
        inside = (rate > 0) & (rate < 1)
        expected = np.sqrt(rate * (1 - rate) / np.maximum(trials, 1))
        np.testing.assert_allclose(each.error[inside], expected[inside], rtol=1e-5)
        # The last pair was never shown.
        assert np.isnan(each.error[np.isnan(rate)]).all()
        assert (each.low[np.isnan(rate)] == 0).all()
        assert (each.high[np.isnan(rate)] == 1).all()


def rates(shown, clicked, prior=NOTHING):
    """Intervals of click rates of documents: [documents] impressions and clicks."""
    shown, clicked = np.asarray(shown), np.asarray(clicked)
    size, document = len(shown), np.arange(len(shown))
    cells = Statistics.of_cells(
        DocumentRate(), document, document * 0, shown, clicked, pairs=size, positions=1
    )
    return fit_counts(cells, prior=prior).intervals["attraction"]


def test_an_interval_at_the_edge_is_one_sided_and_exact():
    """It ends where so many trials without a success have a probability of .05."""
    found = rates([30, 30, 4], [0, 30, 2])
    end = brentq(lambda p: (1 - p) ** 30 - 0.05, 0, 1)
    assert (found.low[0], found.high[1]) == (0, 1)
    assert found.high[0] == pytest.approx(end, rel=1e-4)
    assert found.low[1] == pytest.approx(1 - end, rel=1e-4)
    np.testing.assert_allclose(found.error, [1 / 30, 1 / 30, 0.25], rtol=1e-4)
    np.testing.assert_array_equal(found.impressions, [30, 30, 4])
    assert 0 < found.low[2] < 0.5 < found.high[2] < 1


def test_a_hidden_edge_has_the_slope_of_the_likelihood():
    """A document without clicks below one that is often clicked: it was not always examined."""
    model = HIDDEN["dbn"]
    rng = np.random.default_rng(2)
    pair = np.broadcast_to([0, 1, 2], (400, 3))
    clicks = rng.random((400, 3)) < [0.5, 0.0, 0.3]
    statistics = Statistics.of_pages(model, distinct_pages(pair, clicks, np.ones((400, 3), bool)))
    fitted = fit_em(statistics, tolerance=1e-13)
    assert fitted.parameters["attraction"][1] < 1e-3
    found = intervals(statistics, fitted.parameters)["attraction"]
    problem = EMState(statistics)
    best = np.concatenate(list(fitted.parameters.values()))
    best = np.where(np.isnan(best), 0.5, best)
    moved = best.copy()
    moved[1] += 1e-6
    slope = (problem.objective(best) - problem.objective(moved)) / 1e-6
    assert 1 / found.error[1] == pytest.approx(slope, rel=1e-2)
    assert found.low[1] == 0
    assert found.high[1] == pytest.approx(1 - 0.05 ** (1 / slope), rel=1e-2)


def test_a_prior_counts_with_what_it_imagines():
    found, rate = rates([20], [0], Prior(1, 5)), 1 / 25
    assert found.error[0] == pytest.approx(np.sqrt(rate * (1 - rate) / 25), rel=1e-5)
    assert found.low[0] > 0
    # Five failures are as if the document had been shown five times more.
    edge = rates([20], [0], Prior(0, 5))
    assert edge.high[0] == pytest.approx(1 - 0.05 ** (1 / 25), rel=1e-4)


@pytest.mark.parametrize("rate", [5e-7, 1e-7, 1 - 5e-7])
def test_intervals_of_rare_clicks_hold_the_truth(rate):
    shown = np.full(1000, 1e8)
    found = rates(shown, np.random.default_rng(0).binomial(shown.astype(int), rate))
    assert np.mean((found.low <= rate) & (rate <= found.high)) > 0.92


# UBM has a row per position: its first number is that of no click above.
@pytest.mark.parametrize(("name", "second"), [("pbm", 1), ("ubm", LENGTH)])
def test_the_scale_is_held_and_a_flat_direction_is_not_reported(name, second):
    _, statistics = statistics_of(HIDDEN[name], 2000)
    fitted = fit_em(statistics, tolerance=1e-12)
    found = intervals(statistics, fitted.parameters)
    assert np.isnan(found["examination"].error[0])
    assert 0 < found["examination"].error[second] < 0.1
    # No document of the first two positions is at one of the others.
    model, rng = HIDDEN["pbm"], np.random.default_rng(0)
    pair = np.concatenate([np.repeat(np.arange(20), 2), np.repeat(np.arange(20, 40), 8)])
    position = np.concatenate([np.tile([0, 1], 20), np.tile(np.arange(2, 10), 20)])
    chance = (0.1 + 0.4 * rng.random(40))[pair] / (1 + position)
    clicked = rng.binomial(1000, chance)
    cells = Statistics.of_cells(
        model, pair, position, np.full(len(pair), 1000), clicked, pairs=40, positions=10
    )
    for first in (0.5, 0.99999):
        start = {"examination": np.where(np.arange(10) == 2, first, 0.5)}
        halves = fit_em(cells, start=start).intervals
        for part, known in (("attraction", 20), ("examination", 2)):
            assert np.isfinite(halves[part].error[1:known]).all()
            assert np.isnan(halves[part].error[known:]).all()
            assert (halves[part].high[known:] - halves[part].low[known:] == 1).all()
    # Two documents, each at a place of its own: nobody can tell which of the two is worse.
    cells = Statistics.of_cells(
        model,
        np.array([0, 1]),
        np.array([0, 1]),
        np.array([100, 100]),
        np.array([40, 20]),
        pairs=2,
        positions=2,
    )
    apart = intervals(cells, fit_em(cells, tolerance=1e-12).parameters)
    assert apart["attraction"].error[0] == pytest.approx(np.sqrt(0.4 * 0.6 / 100), rel=1e-3)
    assert np.isnan(apart["attraction"].error[1])
    assert (apart["attraction"].low[1], apart["attraction"].high[1]) == (0, 1)


def test_blocks_are_inverted_in_parts_and_too_large_ones_left_out(monkeypatch, caplog):
    _, _, pair, clicks, where = log_of(HIDDEN["dbn"], 400)
    log = (
        np.concatenate([pair, pair + PAIRS, pair + 2 * PAIRS]),
        *(np.tile(each, (3, 1)) for each in (clicks, where)),
    )
    model = HIDDEN["dbn"]
    statistics = Statistics.of_pages(model, distinct_pages(*log, pairs=3 * PAIRS))
    parameters = fit_em(statistics, tolerance=1e-10).parameters
    whole = intervals(statistics, parameters)
    monkeypatch.setattr(information, "ENTRIES", 1)
    parts = intervals(statistics, parameters)
    np.testing.assert_allclose(parts["attraction"].error, whole["attraction"].error, rtol=1e-9)
    monkeypatch.setattr(information, "LARGEST", 2)
    left_out = intervals(statistics, parameters)
    assert np.isnan(left_out["attraction"].error).all()
    assert (left_out["attraction"].high == 1).all()
    assert np.isfinite(left_out["continuation"].error).all()
    assert "too many" in caplog.text


def test_a_page_longer_than_errors_can_tell_has_none_and_says_so(monkeypatch, caplog):
    _, statistics = statistics_of(HIDDEN["ubm"], 500)
    fitted = fit_em(statistics)
    monkeypatch.setattr(information, "LARGEST", LENGTH)
    found = intervals(statistics, fitted.parameters)
    assert all(np.isnan(each.error).all() for each in found.values())
    assert f"{LENGTH * (LENGTH + 1) // 2 - 1} probabilities of positions" in caplog.text
    # With a prior, too, no number is of a last click below the position.
    intervals(statistics, fitted.parameters, prior=Prior(1, 5))
    assert (
        f"{LENGTH * (LENGTH + 1) // 2 - 1} probabilities of positions" in caplog.records[-1].message
    )

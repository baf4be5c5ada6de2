"""Simulated logs: properties of all sessions, and the distribution of counts and sessions.

A log of n sessions is a sum of n independent sessions, so mean and covariance of all its
cells follow from one session, which is enumerated here: every query, shuffled or not, and
every permutation. Simulators must have these moments over many replications, within bounds for all
moments together (Bonferroni).
"""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from tests.simulated_logs import tabled
from twotowers.logs import simulation as clicks
from twotowers.logs.counts import Counts
from twotowers.logs.simulation import Traffic, random_rankings

ALPHA = 1e-4
"""Chance that a right simulator fails a test with a random seed."""

LENGTHS = np.array([3, 2])
LENGTH = 3
ORDER = np.array([[2, 0, 1], [1, 0, 2]])
PROBABILITY = np.random.default_rng(11).uniform(0.1, 0.9, (2, LENGTH, LENGTH))
SESSIONS = 10
REPLICATIONS = 4000


# Properties of every log.


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.integers(1, 60),
    st.integers(0, 2**32 - 1),
)
def test_every_session_shows_each_document_once_and_fills_each_position_once(
    lengths, sessions, seed
):
    rng = np.random.default_rng(seed)
    temperatures = [0.0, 0.25, 1.0]
    traffic = Traffic(lengths, sessions=sessions, temperatures=temperatures, length=7, rng=rng)
    assert traffic.visits.sum() == sessions
    order = np.argsort(rng.random((len(lengths), 7)) + 9 * (np.arange(7) >= np.c_[lengths]))
    before = np.zeros(1)
    for temperature in temperatures:
        impressions = tabled(traffic.impressions(order, temperature), (len(lengths), 7, 7))
        for query, size in enumerate(lengths):
            shown = impressions[query]
            assert (shown[:size].sum(1) == traffic.visits[query]).all()  # each document
            assert (shown[:, :size].sum(0) == traffic.visits[query]).all()  # each position
            assert not shown[size:].any()
            assert not shown[:, size:].any()
        np.testing.assert_array_equal(Counts(impressions, 0).sessions, traffic.visits)
        # Sessions shuffled at one temperature are shuffled at every higher one.
        shuffled = np.bincount(*traffic.shuffled[temperature], minlength=len(lengths) * 49)
        assert (shuffled >= before).all()
        before = shuffled


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 300])
def test_random_rankings_are_permutations_of_any_length(size):
    rankings = random_rankings(3, size, rng=np.random.default_rng(0))
    assert (np.sort(rankings, axis=1) == np.arange(size)).all()


@pytest.mark.parametrize("chunk", [1, 7, 10**6])
def test_shuffled_impressions_are_uniform_whatever_the_chunk(monkeypatch, chunk):
    monkeypatch.setattr(clicks, "CHUNK", chunk)
    lengths = np.array([3, 4, 1, 3])
    traffic = Traffic(
        lengths,
        sessions=600 if chunk == 1 else 6000,
        temperatures=[1.0],
        length=4,
        rng=np.random.default_rng(0),
    )
    impressions = tabled(traffic.impressions(np.tile(np.arange(4), (4, 1)), 1.0), (4, 4, 4))
    for query, (count, size) in enumerate(zip(traffic.visits, lengths, strict=True)):
        shown = impressions[query, :size, :size]
        assert impressions[query].sum() == shown.sum() == count * size
        assert (shown.sum(0) == count).all()
        assert (shown.sum(1) == count).all()
        if count and size > 1:
            # Each position's documents are a multinomial of equal chances.
            statistic = ((shown - count / size) ** 2 / (count / size)).sum(0)
            assert (statistic < chi2.isf(ALPHA / 6, size - 1)).all()


# Counts and sessions have the same distribution.


def session_moments(temperature) -> tuple[np.ndarray, np.ndarray]:
    """E[x] and E[x x'] of one session's cells: impressions, then clicks."""
    cells = PROBABILITY.size
    first, second = np.zeros(2 * cells), np.zeros((2 * cells, 2 * cells))
    for query, size in enumerate(LENGTHS):
        rankings = [(tuple(ORDER[query, :size]), 1 - temperature)]
        rankings += [
            (ranking, temperature / factorial(size)) for ranking in permutations(range(size))
        ]
        for ranking, share in rankings:
            share = share / len(LENGTHS)
            cell = np.ravel_multi_index(([query] * size, ranking, range(size)), PROBABILITY.shape)
            shown, clicked = np.zeros(cells), np.zeros(cells)
            shown[cell] = 1
            clicked[cell] = PROBABILITY.ravel()[cell]
            mean = np.concatenate([shown, clicked])
            product = np.outer(mean, mean)
            # A click times itself is the click. Other pairs are independent given the ranking.
            product[cells + cell, cells + cell] = clicked[cell]
            first += share * mean
            second += share * product
    return first, second


def largest_deviation(logs: np.ndarray, temperature: float) -> float:
    """The largest standardised deviation of any mean or covariance, over its bound, of logs
    [replications, 2 x cells] of impressions and clicks."""
    first, second = session_moments(temperature)
    mean = SESSIONS * first
    covariance = SESSIONS * (second - np.outer(first, first))
    centred = logs - mean
    products = centred[:, :, None] * centred[:, None, :]
    rows, columns = np.triu_indices(len(mean))
    found = np.concatenate([centred, products[:, rows, columns]], axis=1)
    expected = np.concatenate([0 * mean, covariance[rows, columns]])
    error = found.std(0) / np.sqrt(len(logs))
    certain = error == 0
    assert np.abs(found.mean(0) - expected)[certain].max(initial=0) < 1e-12
    deviation = np.abs(found.mean(0) - expected)[~certain] / error[~certain]
    return deviation.max() / norm.isf(ALPHA / 2 / len(deviation))


def as_rows(logs) -> np.ndarray:
    return np.array([np.concatenate([c.impressions.ravel(), c.clicks.ravel()]) for c in logs])


def from_counts(temperatures, replications=REPLICATIONS, seed=5) -> dict[float, np.ndarray]:
    """Logs of each temperature. They share the random rankings, as in the pipeline."""
    rng = np.random.default_rng(seed)
    logs = {temperature: [] for temperature in temperatures}
    for _ in range(replications):
        traffic = Traffic(
            LENGTHS, sessions=SESSIONS, temperatures=temperatures, length=LENGTH, rng=rng
        )
        for temperature in temperatures:
            shown = tabled(traffic.impressions(ORDER, temperature), PROBABILITY.shape)
            logs[temperature].append(Counts(shown, rng.binomial(shown, PROBABILITY)))
    return {temperature: as_rows(each) for temperature, each in logs.items()}


def test_moments_of_counts_at_every_temperature_of_one_traffic():
    for temperature, logs in from_counts([0, 0.333, 0.666, 1]).items():
        assert largest_deviation(logs, temperature) < 1, temperature

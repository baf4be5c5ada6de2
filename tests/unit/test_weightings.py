"""Weighted counts equal a loop over sessions that weights every impression (Eq. 22)."""

from typing import get_args

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from tests.simulated_logs import cells_of, simulate_sessions
from twotowers.logs.counts import Counts
from twotowers.logs.policies import ranking_order
from twotowers.losses.likelihood import WEIGHTINGS, weighted
from twotowers.methods import likelihood

LENGTHS = np.array([3, 2, 4])
WHERE = np.arange(4) < LENGTHS[:, None]
SCORES = np.array([[1.0, 2.0, 0.5, 0], [1.0, 2.0, 0, 0], [4.0, 3.0, 2.0, 1.0]])


def log(temperature, sessions=300):
    order = ranking_order(SCORES, WHERE, tiebreak=SCORES)
    probability = np.random.default_rng(1).uniform(0.2, 0.8, (3, 4, 4))
    return simulate_sessions(
        order,
        probability,
        LENGTHS,
        sessions=sessions,
        temperature=temperature,
        rng=np.random.default_rng(2),
    )


def on_device(counts):
    return Counts(jnp.asarray(counts.impressions), jnp.asarray(counts.clicks))


def inverse_propensity(counts):
    return Counts(*weighted(("ips",), jnp.asarray(0), on_device(counts)))


@pytest.mark.parametrize("temperature", [0.333, 1])
def test_counts_equal_weighting_every_impression_of_a_session_log(temperature):
    sessions = log(temperature)
    page, position = np.nonzero(sessions.where)
    query, document = sessions.query[page], sessions.documents[page, position]
    shows = pd.DataFrame({"query": query, "document": document, "position": position, "page": page})
    shown = shows.groupby(["query", "document", "position"])["page"].transform("size")
    searched = np.bincount(sessions.query)[query]
    impressions, clicks = np.zeros((2, 3, 4, 4))
    for show, weight in enumerate(searched / shown):  # one over the propensity of its cell
        cell = query[show], document[show], position[show]
        impressions[cell] += weight
        clicks[cell] += weight * sessions.clicks[page, position][show]
    result = inverse_propensity(cells_of(sessions, 3))
    np.testing.assert_allclose(result.impressions, impressions, rtol=1e-5)
    np.testing.assert_allclose(result.clicks, clicks, rtol=1e-5)


def test_a_setting_may_name_every_weighting():
    assert get_args(likelihood.Weighting) == tuple(WEIGHTINGS)


def test_each_lane_has_its_own_weighting():
    counts = on_device(cells_of(log(0.5), 3))
    names = ("queries", "ips", "none", "ips", "impressions")
    for lane, name in enumerate(names):
        together = weighted(names, jnp.asarray(lane), counts)
        for one, alone in zip(together, weighted((name,), jnp.asarray(0), counts), strict=True):
            np.testing.assert_array_equal(one, alone)


def test_small_unsigned_counts_do_not_overflow():
    # 200 + 100 sessions do not fit into the uint8 that holds each cell.
    impressions = np.array([[[200, 100], [100, 200]]], np.uint8)
    clicks = np.array([[[100, 25], [10, 50]]], np.uint8)
    result = inverse_propensity(Counts(impressions, clicks))
    np.testing.assert_allclose(result.impressions, np.full((1, 2, 2), 300), rtol=1e-6)
    np.testing.assert_allclose(result.clicks, [[[150, 75], [30, 75]]], rtol=1e-6)
    columns = (impressions, clicks, *np.indices((1, 2, 2))[1:].reshape(2, 1, 4))
    rows = Counts(*(jnp.asarray(each.reshape(1, 4)) for each in columns))
    listed = weighted(("ips",), jnp.asarray(0), rows)
    for found, dense in zip(listed, (result.impressions, result.clicks), strict=True):
        np.testing.assert_array_equal(found.reshape(1, 2, 2), dense)

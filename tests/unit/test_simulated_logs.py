"""Simulated logs: page by page, and as cells in both layouts."""

import numpy as np
import pandas as pd
import pytest

from tests.unit.simulated import (
    LOG,
    POSITIONS,
    QUERIES,
    policies,
    read,
    settled,
    simulated,
    write_world,
)
from twotowers.experiment import simulated as simulation
from twotowers.files.rankings import pad
from twotowers.logs.cells import Pairs
from twotowers.logs.policies import ScoredPairs
from twotowers.logs.sessions import read_sessions
from twotowers.logs.simulated_sessions import counts_of, read_lane_sessions
from twotowers.splits import SPLITS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def pages(folder):
    return simulated(folder, "pages", record="sessions")


# Pages.


def test_a_log_of_pages_has_all_lanes_and_splits_and_the_first_queries_only(folder, pages):
    found = read(folder, pages)
    for split, sessions in LOG["sessions"].items():
        assert [len(log.query) for log in found[split]] == [sessions] * 4
        assert {int(query) for query in found[split][0].query} == set(range(6))
    ids = {query for batch in read_sessions(pages) for query in batch["query"].to_pylist()}
    assert ids == set(range(6))


def test_pages_show_the_policys_ranking_or_a_random_one(folder, pages):
    policy = policies(folder)["train"]
    best = pad(policy.relevance, policy.pairs.offsets, POSITIONS).argmax(1)
    found = read(folder, pages)["train"]
    share = [(log.documents[:, 0] == best[log.query]).mean() for log in found]
    assert share[2] == 1  # strength 1, temperature 0
    assert 0.5 < share[3] < 0.9
    lengths = policy.pairs.lengths
    for log in found:
        assert (log.where.sum(1) == lengths[log.query]).all()
        for query, documents, where in zip(log.query, log.documents, log.where, strict=True):
            assert sorted(documents[where]) == list(range(lengths[query]))


def test_larger_logs_of_pages_begin_with_the_smaller_ones(folder):
    sessions = {"train": [200, 500], "validation": 50, "test": 50}
    path = simulated(folder, "grown-pages", record="sessions", sessions=sessions)
    lanes = [{"strength": 0.0, "temperature": 0.5, "sessions": n} for n in (200.0, 500.0)]
    found = read(folder, path, lanes)
    few, many = found["train"]
    assert (len(few.query), len(many.query)) == (200, 500)
    for column in ("query", "documents", "clicks"):
        np.testing.assert_array_equal(getattr(many, column)[:200], getattr(few, column))
    one, other = found["validation"]
    np.testing.assert_array_equal(one.documents, other.documents)


@pytest.mark.parametrize("ranked", ["once", "per split"])
def test_a_policy_ranks_once_for_all_splits_or_for_each_anew(folder, ranked):
    path = simulated(
        folder, ranked, record="sessions", queries={"split": "train", "ranked": ranked}
    )
    pairs = policies(folder, queries="train")
    pairs = {split: policy.pairs for split, policy in pairs.items()}
    lane = {"strength": 0.0, "temperature": 0.0}
    found = read_lane_sessions(path, [lane], pairs=pairs, length=POSITIONS)
    shown = [counts_of(found[split], QUERIES, POSITIONS).impressions > 0 for split in SPLITS]
    alike = [(shown[0] == other).all() for other in shown[1:]]
    assert all(alike) == (ranked == "once")


@pytest.mark.parametrize("record", ["cells", "sessions"])
def test_noise_of_each_session_ranks_as_its_distribution_says(folder, record):
    """Two documents a difference d apart, noise U(0, c): the better is first with chance
    1 - (1 - d / c)^2 / 2. And shuffling half of the sessions mixes this with 1 / 2."""
    policy = policies(folder)["train"]
    two = np.flatnonzero(policy.pairs.lengths == 2)[0]
    start, end = policy.pairs.offsets[two : two + 2]
    rows = slice(start, end)
    pairs = Pairs(policy.pairs.query[rows], policy.pairs.document[rows], np.array([0, 2]))
    alone = ScoredPairs(pairs, policy.relevance[rows], np.array([2.0, 1.2], np.float32))
    sessions = {"train": 40_000, "validation": 1, "test": 1}
    log = settled(
        policy={
            "ranker": "expert",
            "strength": [-0.5, 0.6],
            "temperature": [0, 0.5],
            "noise": "session",
        },
        record=record,
        sessions=sessions,
        queries={"split": "train"},
        positions=2,
    )
    for strength, temperature, first in first_shown(alone, log):
        c, d = 4 * (1 - abs(strength)), 0.8 * abs(strength)
        better = 1 - (1 - d / c) ** 2 / 2
        expected = better if strength > 0 else 1 - better
        expected = temperature / 2 + (1 - temperature) * expected
        assert first == pytest.approx(expected, abs=0.01), (strength, temperature)


def first_shown(policy, log):
    """Of each lane the share of sessions in which the first document is at the first position."""
    if not log.has_pages:
        for lane in simulation.draw_cells(log, "train", policy, seed=3):
            cells = lane.counts
            assert cells.impressions.sum() == 2 * 40_000
            first = cells.impressions[(cells.document == 0) & (cells.position == 0)].sum()
            yield lane.lane["strength"], lane.lane["temperature"], first / 40_000
        return
    found = {}
    for batch in simulation.draw_pages(log, "train", policy, seed=3):
        pages = batch.to_pandas()
        first = pages["documents"].map(lambda shown: shown[0]) == policy.pairs.document[0]
        key = pages["strength"].iloc[0], pages["temperature"].iloc[0]
        found.setdefault(key, []).append(first)
    for key, parts in found.items():
        yield *key, np.concatenate(parts).mean()


# Cells


def drawn(folder, **changes):
    """The lanes of the training log."""
    policy = policies(folder, **changes)["train"]
    return list(simulation.draw_cells(settled(**changes), "train", policy, seed=3))


USERS = {
    "additive": {},
    "position based, eta in lanes": {
        "user": {"kind": "position_based", "eta": [0.5, 2], "noise": 0.2}
    },
    "noise in each session": {
        "queries": {"split": "train", "first": 6},
        "policy": {
            "ranker": "expert", "strength": [0.5, 1], "temperature": [0, 0.5], "noise": "session"
        }
    },
}  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("sessions", [700, [100, 700]])
def test_each_lane_lists_each_shown_cell_once(folder, user, sessions):
    changes = USERS[user] | {"sessions": {"train": sessions, "validation": 1, "test": 1}}
    found = drawn(folder, **changes)
    assert len(found) == np.prod([len(lane) for lane in settled(**changes).lanes.values()])
    for each in found:
        *place, shown, clicked = vars(each.counts).values()
        cells = list(zip(*place, strict=True))
        assert cells == sorted(set(cells))
        assert (shown > 0).all()
        assert (clicked <= shown).all()
        assert shown.sum() > clicked.sum() > 0


def test_a_log_does_not_depend_on_which_other_strengths_there_are(folder):
    one = simulated(folder, "one-strength", policy=LOG["policy"] | {"strength": [1]})
    lanes = pd.read_parquet(simulated(folder, "cells")).query("strength == 1")
    pd.testing.assert_frame_equal(pd.read_parquet(one), lanes.reset_index(drop=True))


def test_larger_logs_contain_the_smaller_ones(folder):
    sessions = {"train": [100, 700, 5000], "validation": 1, "test": 1}
    found = drawn(folder, sessions=sessions)
    dense = np.zeros((2, len(found), 6, POSITIONS, POSITIONS), int)
    for number, lane in enumerate(found):
        *place, shown, clicked = vars(lane.counts).values()
        dense[(0, number, *place)], dense[(1, number, *place)] = shown, clicked
    by_size = dense.reshape(2, 4, 3, 6, POSITIONS, POSITIONS)
    assert (np.diff(by_size, axis=2) >= 0).all()
    assert (by_size[0, ..., 0].sum((-1, -2)) == [100, 700, 5000]).all()

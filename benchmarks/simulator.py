"""Sessions per second of the counting simulator and of a plain session-by-session simulator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import ONE_THREAD, best_seconds, child
from benchmarks.worlds import SEED, World, shapes
from twotowers.logs.counts import Counts

SIZES = {
    # With shuffled rankings, time grows with sessions, so a longer log shows nothing new.
    "full": {
        "queries": 3000,
        "powers": {0: range(4, 10), 0.333: range(4, 9), 1: range(4, 9)},
        "plain": 100_000,
    },
    "quick": {"queries": 50, "powers": {0: range(3, 5), 1: range(3, 5)}, "plain": 1000},
}
DOCUMENTS = 25
REPEAT_BELOW = 10**8
"""Longer logs are drawn once, since noise hardly changes their time."""


def run(*, queries: int, powers: dict[float, range], plain: int) -> Iterator[dict]:
    """Yield a row per simulator, temperature and number of sessions."""
    for temperature, each in powers.items():
        runs = [("session by session", plain), *(("counts", 10**power) for power in each)]
        for simulator, sessions in runs:
            size = {"temperature": temperature, "sessions": sessions, "queries": queries}
            found = child(
                "benchmarks.simulator:time_simulator",
                environment=ONE_THREAD,
                simulator=simulator,
                **size,
            )
            yield {"simulator": simulator, **size, **found}


def time_simulator(*, simulator: str, queries: int, sessions: int, temperature: float) -> dict:
    """Seconds of a log, and its sessions."""
    world = shapes(queries, DOCUMENTS, 1)
    simulate = {"counts": World.counts, "session by session": plain_counts}[simulator]
    counts = simulate(world, sessions, temperature)
    assert counts.sessions.sum() == sessions
    del counts
    repeats = 3 if sessions < REPEAT_BELOW else 1
    return {"seconds": best_seconds(lambda: simulate(world, sessions, temperature), repeats)}


def plain_counts(world: World, sessions: int, temperature: float) -> Counts:
    """The same log by a Python loop over sessions."""
    rng = np.random.default_rng(SEED)
    queries, documents = world.relevance.shape
    impressions = np.zeros((queries, documents, documents), np.int64)
    clicks = np.zeros_like(impressions)
    order, chance, positions = world.order, world.chance, np.arange(documents)
    for _ in range(sessions):
        query = rng.integers(queries)
        shuffled = rng.random() < temperature
        page = rng.permutation(documents) if shuffled else order[query]
        clicked = rng.random(documents) < chance[query, page, positions]
        impressions[query, page, positions] += 1
        clicks[query, page, positions] += clicked
    return Counts(impressions, clicks)

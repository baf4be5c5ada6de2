"""A log of one ranking per query on long lists: time and memory from simulation to fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import CACHE, ONE_THREAD, child
from twotowers.experiment import simulated, simulated_clicks
from twotowers.experiment.simulated import Policy, Sessions, SimulatedLog
from twotowers.files.rankings import mask, pad
from twotowers.logs import counts, simulation
from twotowers.logs.cells import Pairs, read_logs, write_logs
from twotowers.logs.policies import ScoredPairs
from twotowers.methods.likelihood import fit
from twotowers.methods.task import Split, Task
from twotowers.models.additive import Additive
from twotowers.randomness import stream

SEED = 2021
WIDTH = 8
"""Features of a document. They are few, since the benchmark is not about them."""
BATCH = 64

SIZES = {
    # `dense`: queries of the dense layout, as many as fit into a small machine's memory.
    "full": {
        "queries": 18_919,
        "documents": 201,
        "sessions": 10**6,
        "temperatures": (0, 0.01),
        "dense": 1000,
    },
    "quick": {"queries": 30, "documents": 40, "sessions": 500, "temperatures": (0.1,), "dense": 20},
}
STEPS = {
    "simulate and write": "benchmarks.longlists:simulate_and_write",
    "read": "benchmarks.longlists:read",
    "read, and fit one epoch": "benchmarks.longlists:fit_epoch",
}


def run(
    *, queries: int, documents: int, sessions: int, temperatures: tuple, dense: int
) -> Iterator[dict]:
    """Yield a row per layout, temperature and step, each step in a process of its own."""
    # Both layouts have the same sessions per query.
    sizes = [("listed", queries, sessions), ("dense", dense, sessions * dense // queries)]
    for layout, some, visits in sizes:
        for temperature in temperatures:
            size = {"queries": some, "documents": documents, "sessions": visits}
            all_cells = some * documents**2
            for what, target in STEPS.items():
                found = child(
                    target, environment=ONE_THREAD, layout=layout, temperature=temperature, **size
                )
                yield {
                    "layout": layout, "temperature": temperature, **size, "what": what, **found,
                    "all_cells": all_cells, "dense_gb": 2 * 8 * all_cells / 1e9,
                }  # fmt: skip


def simulate_and_write(
    *, layout: str, queries: int, documents: int, sessions: int, temperature: float
) -> dict:
    """Seconds from a policy in memory to a file, and the number of its cells."""
    _force(layout)
    policy = _policy(queries, documents)
    log = SimulatedLog(
        dataset="made",
        relevance="annotated",
        positions=documents,
        policy=Policy(ranker=simulated.EXPERT, temperature=temperature),
        sessions=Sessions(train=sessions, validation=1, test=1),
    )
    start = time.perf_counter()
    lanes = simulated_clicks.draw_cells(log, "train", policy, seed=SEED)
    write_logs(_path(layout, temperature), lanes, {"train": policy.pairs})
    took = time.perf_counter() - start
    return {"seconds": took, "cells": pq.read_metadata(_path(layout, temperature)).num_rows}


def read(*, layout: str, queries: int, documents: int, sessions: int, temperature: float) -> dict:
    """Seconds from the file to counts in memory, and the number of their cells."""
    _force(layout)
    policy = _policy(queries, documents)
    start = time.perf_counter()
    found = _read(layout, policy, documents, temperature)
    took = time.perf_counter() - start
    assert found.sessions.sum() == sessions
    return {"seconds": took, "held": found.impressions.size}


def fit_epoch(
    *, layout: str, queries: int, documents: int, sessions: int, temperature: float
) -> dict:
    """Seconds of a fit of one epoch, with compilation and both losses."""
    _force(layout)
    policy = _policy(queries, documents)
    found = _read(layout, policy, documents, temperature)
    assert found.listed == (layout == "listed")
    where = mask(policy.pairs.lengths, documents)
    features = stream("longlists features", SEED).standard_normal((*where.shape, WIDTH), np.float32)
    relevance = pad(policy.relevance, policy.pairs.offsets, documents)
    split = Split(features, where, relevance, found)
    training = {
        "learning_rate": 0.01, "batch": min(BATCH, queries), "steps": -(-queries // BATCH),
        "epochs": 1, "patience": 1, "min_delta": 0.0,
    }  # fmt: skip
    splits = dict.fromkeys(("train", "validation", "test"), split)
    task = Task(Additive(), "linear", splits, [(0, {})], training, documents, SEED)
    start = time.perf_counter()
    (fitted,) = fit(task)
    took = time.perf_counter() - start
    assert np.isfinite(fitted.bias).all()
    return {"seconds": took, "held": found.impressions.size}


def _force(layout: str) -> None:
    """Use this layout for lists of any length in this process."""
    longest = 10**6 if layout == "dense" else 1
    for module in (counts, simulation, simulated_clicks):
        module.LONGEST_DENSE = longest


def _policy(queries: int, documents: int) -> ScoredPairs:
    """Lists of one length, ranked by relevance."""
    query, document = np.divmod(np.arange(queries * documents), documents)
    pairs = Pairs(query, document.astype(np.int32), np.arange(queries + 1) * documents)
    rng = stream("longlists relevance", SEED)
    relevance = rng.uniform(0, 4, len(query)).astype(np.float32)
    return ScoredPairs(pairs, relevance, relevance)


def _path(layout: str, temperature: float) -> Path:
    folder = CACHE / "longlists"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{layout}-{temperature}.parquet"


def _read(layout: str, policy: ScoredPairs, documents: int, temperature: float):
    lane = {"strength": 1.0, "temperature": float(temperature)}
    return read_logs(
        _path(layout, temperature), [lane], split="train", pairs=policy.pairs, length=documents
    )

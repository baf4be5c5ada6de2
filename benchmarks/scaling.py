"""Time and memory of a fit against sessions and lanes, one size at a time.

All fits have the same number of steps, without early stopping.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np

from benchmarks.fits import counts_training
from benchmarks.measure import ONE_THREAD, best_seconds, child
from benchmarks.worlds import SEED, shapes
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.logs.counts import Counts
from twotowers.methods.descent import count_loss
from twotowers.methods.task import Split
from twotowers.towers.two_towers import two_towers

BASE = {
    "queries": 3000,
    "documents": 25,
    "width": 136,
    "sessions": 10**6,
    "temperature": 0.333,
    "lanes": 1,
}
LANES = (1, 2, 4, 8, 12)
GRIDS = {
    "sessions": [
        {"temperature": temperature, "sessions": 10**power}
        for temperature in (0, 0.333, 1)
        for power in (6, 8)
    ],
    "lanes": [{"lanes": lanes} for lanes in LANES],
}
TOWERS = ("linear", "deep")

SIZES = {
    "full": {"epochs": 4, "rounds": 2, "base": {}, "grids": list(GRIDS)},
    "quick": {
        "epochs": 1,
        "rounds": 1,
        "base": {"queries": 40, "sessions": 10**4},
        "grids": ["lanes"],
    },
}
REPEATS = 3
"""Fits per process. The fastest counts."""


def run(*, epochs: int, rounds: int, base: dict, grids: list[str]) -> Iterator[dict]:
    """Yield a row per grid, tower and size.

    A curve is measured in rounds, one size after the other. The fastest run of each size counts. So
    slow minutes of a shared machine do not hit a single size.
    """
    for grid in grids:
        for tower in TOWERS:
            curve = [BASE | base | change for change in GRIDS[grid]]
            measure = partial(child, f"{__name__}:time_fit", environment=ONE_THREAD)
            training = {"tower": tower, "epochs": epochs}
            tries = zip(
                *([measure(**size, **training) for size in curve] for _ in range(rounds)),
                strict=True,
            )
            for size, found in zip(curve, tries, strict=True):
                fastest = min(found, key=lambda each: each["seconds"])
                yield {"grid": grid, "tower": tower, **size, **fastest}


def time_fit(*, tower: str, epochs: int, **size) -> dict:
    """Seconds of a fit to noise of the given size, and the size of its arrays."""
    train = prepare(tower=tower, epochs=epochs, **size)
    train()
    objective = train.args[1]
    return {
        "seconds": best_seconds(train, REPEATS),
        "epochs": epochs,
        "data_gb": sum(leaf.nbytes for leaf in jax.tree.leaves(objective)) / 1e9,
        "cells": int((objective.impressions[0] > 0).sum()),
    }


def prepare(
    *,
    tower: str,
    epochs: int,
    queries: int,
    documents: int,
    width: int,
    sessions: int,
    temperature: float,
    lanes: int,
) -> partial:
    """A function that fits noise of the given size for some epochs.

    A third of the queries validates, as in `benchmarks.fits`.
    """
    world = shapes(queries, documents, width)
    counts = world.counts(sessions, temperature)
    narrow = np.min_scalar_type(int(counts.impressions.max()))

    def objective(some: slice):
        shown, clicked = (
            np.broadcast_to(each[some].astype(narrow), (lanes, *each[some].shape))
            for each in (counts.impressions, counts.clicks)
        )
        features = world.features[some]
        where = np.ones(features.shape[:2], bool)
        return count_loss(Split(features, where, None, Counts(shown, clicked)))

    settings = FitSettings(
        **counts_training(f"fit-{tower}") | {"epochs": epochs, "patience": epochs}
    )
    model = two_towers(tower, width=width, pairs=0, positions=documents, seed=SEED)
    every, third = slice(None), slice(queries // 3)
    return partial(fit, model, objective(every), objective(third), settings, lanes=lanes, seed=SEED)

"""Towers of 30 features on logs of more and more sessions: counted, in memory, or as it is read."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.counting import write_drawn
from benchmarks.measure import CACHE, child

SIZES = {
    "full": {"sizes": [1_000_000, 10_000_000], "queries": 20_000},
    "quick": {"sizes": [2_000], "queries": 20},
}
MODELS = ("pbm", "dbn")
LENGTH, CANDIDATES, WIDTH = 10, 20, 30
EPOCHS = 1
"""Passes over the log, so that seconds compare."""


def run(*, sizes: list[int], queries: int) -> Iterator[dict]:
    folder = CACHE / "streaming"
    folder.mkdir(parents=True, exist_ok=True)
    for pages in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            child(f"{__name__}:generate", folder=scratch, pages=pages, queries=queries)
            for model in MODELS:
                measured = child(f"{__name__}:time_fit", folder=scratch, model=model)
                rate = 1e6 * measured["seconds"] / pages
                yield {"model": model, "sessions": pages, "seconds_per_million": rate, **measured}


def generate(*, folder: str, pages: int, queries: int) -> dict:
    """A sessions file of users who examine rank k with chance 1 / k, and a table of features."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(queries * CANDIDATES, WIDTH)).astype(np.float32)
    relevance = expit(features[:, 0] + np.abs(features[:, 1]) - 0.5)
    table = pd.DataFrame(features, columns=[f"f{number}" for number in range(WIDTH)])
    table.insert(0, "document", np.arange(len(table)))
    table.to_parquet(Path(folder) / "features.parquet")

    def draw(size: int) -> tuple[np.ndarray, ...]:
        query = rng.integers(queries, size=size)
        ranking = rng.random((size, CANDIDATES)).argsort(axis=1)[:, :LENGTH]
        documents = query[:, None] * CANDIDATES + ranking
        chance = relevance[documents] / np.arange(1, LENGTH + 1)
        return query, documents, rng.random((size, LENGTH)) < chance

    return write_drawn(Path(folder) / "log.parquet", pages, draw)


def time_fit(*, folder: str, model: str) -> dict:
    """Seconds from files to a fit, how it was fitted, and held-out perplexity."""
    import twotowers as tt

    towers, start = tt.TwoTower("deep", click_model=model), time.perf_counter()
    log, features = tt.read_log(f"{folder}/log.parquet"), f"{folder}/features.parquet"
    fit = tt.fit(log, towers, features=features, training={"epochs": EPOCHS})
    took = time.perf_counter() - start
    how = fit.read.how.partition(":")[0].partition(",")[0]
    held_out = fit.evaluate().iloc[0]
    return {"seconds": took, "how": how, "conditional": float(held_out["conditional"])}

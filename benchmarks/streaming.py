"""Towers of 30 features on logs of more and more sessions: counted, in memory, or as it is read.

CLAX trains on the smallest log, too. Networks are of the same size on both sides, each trains until
it stops by itself, and both predict the same held-out pages.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.beside_clax import TRAINING, python_of_clax
from benchmarks.counting import write_drawn
from benchmarks.measure import CACHE, child

SIZES = {
    "full": {"sizes": [1_000_000, 10_000_000], "queries": 20_000, "clax": True},
    "quick": {"sizes": [2_000], "queries": 20, "clax": False},
}
MODELS = ("pbm", "dbn")
LENGTH, CANDIDATES, WIDTH = 10, 20, 30
LAYERS = [32, 32]
HELD_OUT = 100_000
"""Pages that are predicted, at most a tenth of those that are fitted."""


def run(*, sizes: list[int], queries: int, clax: bool) -> Iterator[dict]:
    folder = CACHE / "streaming"
    folder.mkdir(parents=True, exist_ok=True)
    python = python_of_clax() if clax else None
    for pages in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            child("benchmarks.streaming:generate", folder=scratch, pages=pages, queries=queries)
            for model in MODELS:
                row = {"model": model, "sessions": pages}
                ours = child("benchmarks.streaming:time_fit", folder=scratch, model=model)
                yield row | {"by": "ours"} | ours
                if clax and pages == min(sizes):
                    how = {"log": scratch, "name": model, "layers": LAYERS, **TRAINING}
                    peer = child("benchmarks.clax.clickmodels:fit_log", python=python, **how)
                    about = {"by": "CLAX", "how": "pages are in memory", "seconds": peer["file"]}
                    yield row | about | peer


def generate(*, folder: str, pages: int, queries: int) -> dict:
    """Write two logs of users who examine rank k with chance 1 / k, and a table of features."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(queries * CANDIDATES, WIDTH)).astype(np.float32)
    relevance = expit(features[:, 0] + np.abs(features[:, 1]) - 0.5)
    table = pd.DataFrame(features, columns=[f"f{number}" for number in range(WIDTH)])
    table.insert(0, "document", np.arange(len(table)))
    table.to_parquet(Path(folder) / "features.parquet")
    np.save(Path(folder) / "features.npy", features)

    def draw(size: int) -> tuple[np.ndarray, ...]:
        query = rng.integers(queries, size=size)
        ranking = rng.random((size, CANDIDATES)).argsort(axis=1)[:, :LENGTH]
        documents = query[:, None] * CANDIDATES + ranking
        chance = relevance[documents] / np.arange(1, LENGTH + 1)
        return query, documents, rng.random((size, LENGTH)) < chance

    for name, number in (("train", pages), ("test", min(HELD_OUT, pages // 10))):
        write_drawn(Path(folder) / f"{name}.parquet", number, draw)
    return {}


def time_fit(*, folder: str, model: str) -> dict:
    """Seconds from files to a fit, how it was fitted, and held-out perplexity."""
    import twotowers as tt

    towers, start = tt.TwoTower(tt.Dense(LAYERS), click_model=model), time.perf_counter()
    log, features = tt.read_log(f"{folder}/train.parquet"), f"{folder}/features.parquet"
    fit = tt.fit(log, towers, features=features)
    took = time.perf_counter() - start
    how = fit.read.how.partition(":")[0].partition(",")[0]
    held_out = fit.evaluate(tt.read_log(f"{folder}/test.parquet"), features).iloc[0]
    epochs = int(fit.fitted[0].values["epochs"])
    conditional = float(held_out["conditional"])
    return {"seconds": took, "how": how, "epochs": epochs, "conditional": conditional}

"""Sessions on disk -> cells: by the library, and by DuckDB alone; and a plain scan."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import CACHE, child, seconds
from twotowers.logs.click_log import bytes_of, log_of_format
from twotowers.logs.counted import CELL, write_counts
from twotowers.logs.sessions import page_batch, write_sessions

SIZES = {
    "full": {"pages": 10_000_000, "queries": 1_000_000},
    "quick": {"pages": 2_000, "queries": 300},
}
LENGTH, CANDIDATES = 10, 30
THREADS = 2
MEMORY = "3GB"
"""Memory limit of DuckDB, so that the process stays below 4 GB."""
PAGES = """
SELECT split, query, unnest(documents) AS document,
    unnest(range(1, len(documents) + 1))::INTEGER AS position, unnest(clicks) AS click
FROM read_parquet('{path}')
"""
KEYS = "split, query, document, position"


def run(*, pages: int, queries: int) -> Iterator[dict]:
    folder = CACHE / "counting"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        path = str(Path(scratch) / "sessions.parquet")
        child(f"{__name__}:generate", path=path, pages=pages, queries=queries)
        scan = child(f"{__name__}:time_scan", path=path)["seconds"]
        cells = set()
        for engine in COUNTS:
            counted = child(f"{__name__}:time_count", name=engine, path=path)
            cells.add(counted["cells"])
            yield {"engine": engine, "impressions": pages * LENGTH, "scan": scan, **counted}
        assert len(cells) == 1, "engines disagree"


def generate(*, path: str, pages: int, queries: int) -> dict:
    """A sessions file. Queries follow Zipf's law; noise varies the rankings of each query."""
    rng = np.random.default_rng(0)
    popular = np.cumsum(1 / np.arange(1, queries + 1))
    chance = 0.3 / np.arange(1, LENGTH + 1)

    def draw(size: int) -> tuple[np.ndarray, ...]:
        query = np.searchsorted(popular, rng.random(size) * popular[-1])
        noise = rng.normal(0, 4, (size, CANDIDATES)).astype(np.float32)
        ranking = (np.arange(CANDIDATES, dtype=np.float32) + noise).argsort(axis=1)[:, :LENGTH]
        documents = query[:, None] * CANDIDATES + ranking
        return query, documents, rng.random((size, LENGTH)) < chance

    return write_drawn(path, pages, draw)


def write_drawn(path: str | Path, pages: int, draw: Callable[[int], tuple]) -> dict:
    """A sessions file; `draw`: size -> [pages] queries, [pages, length] documents and clicks."""
    sizes = (min(100_000, pages - start) for start in range(0, pages, 100_000))
    return {"pages": write_sessions(path, (page_batch(*draw(size), "train") for size in sizes))}


def time_scan(*, path: str) -> dict:
    """Seconds to sum all documents and clicks."""

    def scan() -> None:
        file = pq.ParquetFile(path, pre_buffer=False)
        for batch in file.iter_batches(batch_size=100_000, columns=["documents", "clicks"]):
            for column in batch.columns:
                pc.sum(column.flatten())

    return {"seconds": seconds(scan)}


def time_count(*, name: str, path: str) -> dict:
    """Seconds of sessions file -> sorted cells file, and the number of cells."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as scratch:
        out = str(Path(scratch) / "cells.parquet")
        time = seconds(lambda: COUNTS[name](path, out))
        cells = pq.read_metadata(out).num_rows
    return {"seconds": time, "cells": cells}


def count_here(path: str, out: str) -> None:
    log = log_of_format(path, "sessions")
    log.memory = bytes_of(MEMORY)
    write_counts(out, log.portions(["split", *CELL]), log.seen)


def group_by(path: str, keys: str) -> str:
    """DuckDB's count of impressions and clicks."""
    counts = "count(*) AS impressions, count_if(click) AS clicks"
    return f"SELECT {keys}, {counts} FROM ({PAGES.format(path=path)}) GROUP BY {keys}"


def count_duckdb(path: str, out: str) -> None:
    config = {"memory_limit": MEMORY, "threads": THREADS, "temp_directory": out + ".spill"}
    with duckdb.connect(config=config | {"preserve_insertion_order": False}) as connection:
        counts = f"{group_by(path, KEYS)} ORDER BY {KEYS}"
        connection.execute(f"COPY ({counts}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")
    shutil.rmtree(out + ".spill", ignore_errors=True)


COUNTS = {"twotowers": count_here, "DuckDB": count_duckdb}

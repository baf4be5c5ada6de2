"""Sessions on disk -> cells: by the library, and by other engines.

Polars is not among the project's packages. The full size makes an environment for the engines once,
with the versions below. The quick size uses what is installed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import CACHE, child, own_python, seconds

SIZES = {
    "full": {"pages": 10_000_000, "queries": 1_000_000, "own": True},
    "quick": {"pages": 2_000, "queries": 300, "own": False},
}
ENGINES = ("polars==2.1.0", "duckdb==2.0.0", "pyarrow==26.0.1", "numpy==2.4.6")
LENGTH, CANDIDATES = 10, 30
THREADS = 2
MEMORY = "3GB"
"""Memory limit of DuckDB, so that the process stays below 4 GB. The others have none."""
BUCKETS = 32

PAGES = """
SELECT split, query, unnest(documents) AS document,
    unnest(range(1, len(documents) + 1))::INTEGER AS position, unnest(clicks) AS click
FROM read_parquet('{path}')
"""
KEYS = "split, query, document, position"


def run(*, pages: int, queries: int, own: bool) -> Iterator[dict]:
    """Yield a row per engine: counting, and a plain scan of the same columns."""
    python = own_python("engines", "the engines", *ENGINES) if own else sys.executable
    folder = CACHE / "counting"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        path = str(Path(scratch) / "sessions.parquet")
        child("benchmarks.counting:generate", path=path, pages=pages, queries=queries)
        scans, cells = {}, set()
        for name, (engine, _) in SCANS.items():
            if own or find_spec(engine):
                found = child("benchmarks.counting:time_scan", python=python, name=name, path=path)
                scans[engine] = found["seconds"]
        for name, (engine, _) in COUNTS.items():
            if not own and not find_spec(engine):
                continue
            found = child(
                "benchmarks.counting:time_count",
                python=sys.executable if name == "twotowers" else python,
                environment={"POLARS_MAX_THREADS": str(THREADS)},
                name=name,
                path=path,
            )
            cells.add(found["cells"])
            yield {
                "engine": name,
                "version": found.pop("version"),
                "impressions": pages * LENGTH,
                "scan": scans[engine],
                **found,
            }
        assert len(cells) == 1, "engines disagree"


def generate(*, path: str, pages: int, queries: int) -> dict:
    """A sessions file. Queries follow Zipf's law; noise varies the rankings of each query."""
    import numpy as np
    import pyarrow as pa

    from twotowers.logs.sessions import write_sessions

    rng = np.random.default_rng(0)
    popular = np.cumsum(1 / np.arange(1, queries + 1))
    chance = 0.3 / np.arange(1, LENGTH + 1)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, pages, 100_000):
            size = min(100_000, pages - start)
            query = np.searchsorted(popular, rng.random(size) * popular[-1])
            score = np.arange(CANDIDATES, dtype=np.float32) + rng.normal(
                0, 4, (size, CANDIDATES)
            ).astype(np.float32)
            ranking = score.argsort(axis=1)[:, :LENGTH]
            documents = query[:, None] * CANDIDATES + ranking
            clicks = rng.random((size, LENGTH)) < chance
            offsets = pa.array(np.arange(0, size * LENGTH + 1, LENGTH), pa.int32())
            yield pa.RecordBatch.from_pydict(
                {
                    "split": pa.repeat("train", size),
                    "query": query.astype(np.int64),
                    "documents": pa.ListArray.from_arrays(offsets, documents.ravel()),
                    "clicks": pa.ListArray.from_arrays(offsets, pa.array(clicks.ravel())),
                }
            )

    return {"pages": write_sessions(path, batches())}


def time_scan(*, name: str, path: str) -> dict:
    """Seconds to sum all documents and clicks."""
    return {"seconds": seconds(lambda: SCANS[name][1](path))}


def time_count(*, name: str, path: str) -> dict:
    """Seconds of sessions file -> sorted cells file, and the number of cells."""
    import pyarrow.parquet as pq

    engine, count = COUNTS[name]
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as scratch:
        out = str(Path(scratch) / "cells.parquet")
        time = seconds(lambda: count(path, out))
        cells = pq.read_metadata(out).num_rows
    return {"seconds": time, "cells": cells, "version": version(engine)}


# The library


def count_here(path: str, out: str) -> None:
    from twotowers.logs.warehouse import count_sessions

    count_sessions(path, out, memory=MEMORY, threads=THREADS)


# DuckDB


def _duckdb(scratch: str):
    import duckdb

    return duckdb.connect(
        config={
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": scratch + ".spill",
            "preserve_insertion_order": False,
        }
    )


def count_duckdb(path: str, out: str) -> None:
    with _duckdb(out) as connection:
        connection.execute(
            f"COPY (SELECT {KEYS}, count(*) AS impressions, count_if(click) AS clicks "
            f"FROM ({PAGES.format(path=path)}) GROUP BY {KEYS} ORDER BY {KEYS}) "
            f"TO '{out}' (FORMAT parquet, COMPRESSION zstd)"
        )
    shutil.rmtree(out + ".spill", ignore_errors=True)


def scan_duckdb(path: str) -> None:
    with _duckdb(path) as connection:
        connection.execute(
            "SELECT sum(document), count_if(click) FROM "
            f"(SELECT unnest(documents) AS document, unnest(clicks) AS click "
            f"FROM read_parquet('{path}'))"
        ).fetchall()


# Polars


def count_polars(path: str, out: str) -> None:
    import polars as pl

    keys = KEYS.split(", ")
    position = pl.int_ranges(1, pl.col("documents").list.len() + 1, dtype=pl.Int32)
    (
        pl.scan_parquet(path)
        .with_columns(position=position)
        .explode("documents", "clicks", "position")
        .rename({"documents": "document"})
        .group_by(keys)
        .agg(impressions=pl.len().cast(pl.Int64), clicks=pl.col("clicks").sum().cast(pl.Int64))
        .sort(keys)
        .sink_parquet(out, engine="streaming")
    )


def scan_polars(path: str) -> None:
    import polars as pl

    shown = pl.scan_parquet(path).select("documents", "clicks").explode("documents", "clicks")
    shown.select(pl.all().sum()).collect(engine="streaming")


# Arrow


def _flat(batch):
    """Pages -> a row per shown document."""
    import numpy as np
    import pyarrow as pa

    lengths = batch["documents"].value_lengths().to_numpy()
    page = np.repeat(np.arange(len(batch)), lengths)
    position = np.arange(len(page)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    return pa.RecordBatch.from_pydict(
        {
            "split": batch["split"].dictionary_encode().take(pa.array(page)),
            "query": batch["query"].take(pa.array(page)),
            "document": batch["documents"].flatten(),
            "position": position.astype(np.int32),
            "click": batch["clicks"].flatten(),
        }
    )


def _shown(path: str):
    import pyarrow.parquet as pq

    return map(_flat, pq.ParquetFile(path, pre_buffer=False).iter_batches(batch_size=100_000))


def _grouped(table):
    import pyarrow as pa

    keys = KEYS.split(", ")
    split = table.schema.get_field_index("split")
    table = table.set_column(split, "split", table["split"].cast(pa.string()))
    found = table.group_by(keys).aggregate([("click", "count"), ("click", "sum")])
    return found.sort_by([(key, "ascending") for key in keys])


def count_arrow(path: str, out: str) -> None:
    """Count with Arrow. Its `group_by` holds all pages in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(_grouped(pa.Table.from_batches(_shown(path))), out, compression="zstd")


def count_arrow_in_buckets(path: str, out: str) -> None:
    """Count by hand: split rows by query into files, and count one file after the other."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(dir=Path(out).parent) as scratch:
        writers = {}
        for batch in _shown(path):
            bucket = batch["query"].to_numpy() % BUCKETS
            order = np.argsort(bucket, kind="stable")
            ends = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
            batch = batch.set_column(0, "split", batch["split"].cast(pa.string()))
            batch = batch.take(pa.array(order))
            for number in range(BUCKETS):
                if number not in writers:
                    writers[number] = pa.ipc.new_file(f"{scratch}/{number}", batch.schema)
                start = ends[number]
                writers[number].write_batch(batch.slice(start, ends[number + 1] - start))
        for writer in writers.values():
            writer.close()
        cells = None
        for number in writers:
            with pa.memory_map(f"{scratch}/{number}") as file:
                found = _grouped(pa.ipc.open_file(file).read_all())
                cells = cells or pq.ParquetWriter(out, found.schema, compression="zstd")
                cells.write_table(found)
        cells.close()


def scan_arrow(path: str) -> None:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = ["documents", "clicks"]
    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(
        batch_size=100_000, columns=columns
    ):
        for name in columns:
            pc.sum(batch[name].flatten())


COUNTS = {
    "twotowers": ("duckdb", count_here),
    "DuckDB": ("duckdb", count_duckdb),
    "Polars": ("polars", count_polars),
    "Arrow": ("pyarrow", count_arrow),
    "Arrow in buckets": ("pyarrow", count_arrow_in_buckets),
}
SCANS = {
    "DuckDB": ("duckdb", scan_duckdb),
    "Polars": ("polars", scan_polars),
    "Arrow": ("pyarrow", scan_arrow),
}
"""Name -> the package that it needs, and the function."""

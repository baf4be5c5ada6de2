"""Counting out of core: any number of sessions -> cells, by DuckDB.

Any warehouse understands the statement (docs/warehouses.md). DuckDB groups and sorts within its
memory limit, and uses the disk, beside the output file, for the rest.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa

from twotowers.errors import InputError, check_choice
from twotowers.files.tables import write_batches
from twotowers.logs.sessions import (
    EMPTY,
    bias_features,
    check_free,
    conform,
    described,
    empty,
    lane_columns,
    read_sessions,
)

MEMORY = "3GB"
"""Memory limit of DuckDB. The process needs about half a gigabyte more."""
GROUP = 1 << 20
"""Cells of a row group."""

COUNT = """
SELECT {keys}, count(*)::BIGINT AS impressions, count_if(click)::BIGINT AS clicks
FROM (
    SELECT {pages},
        unnest(documents) AS document,
        unnest(range(1, len(documents) + 1))::INTEGER AS position,
        {bias}
        unnest(clicks) AS click
    FROM pages
)
GROUP BY {keys}
ORDER BY {keys}
"""
ADD_UP = """
SELECT {keys}, sum(impressions)::BIGINT AS impressions, sum(clicks)::BIGINT AS clicks
FROM cells
GROUP BY {keys}
ORDER BY {keys}
"""
NO_CELLS = pa.schema(
    [
        ("split", pa.string()),
        ("query", pa.int64()),
        ("document", pa.int64()),
        ("position", pa.int32()),
        ("impressions", pa.int64()),
        ("clicks", pa.int64()),
    ]
)
"""The columns of a log without pages."""


def count_sessions(
    sessions: str | Path | Sequence[str | Path] | Iterable[pa.RecordBatch],
    path: str | Path,
    *,
    bias: Sequence[str] = (),
    memory: str = MEMORY,
    threads: int | None = None,
    seen: Mapping | None = None,
) -> int:
    """Count impressions and clicks of each cell: sessions -> cells.

    A cell is (lane columns, split, query, document, position, bias features chosen), and
    impressions = number of pages that show it, clicks = number of those with a click on it.

    Args:
        sessions: a sessions file, several of them with the same columns, or batches of pages as
            `twotowers.logs.sessions` describes them.
        path: the parquet file to write: lane columns, split, query, document, position (int32,
            from 1), bias features, impressions, clicks (int64), sorted by all before these two.
        bias: bias features that tell cells apart.
        memory: memory limit of DuckDB, such as '3GB'. The rest goes to disk.
        threads: of DuckDB; None for all cores. They do not change the file.
        seen: numbers for the file's metadata, read after the last batch.

    Returns:
        The number of cells.

    Examples:
        >>> page = pa.record_batch(
        ...     {"split": ["a"] * 2, "query": [7, 7], "documents": [[3, 1], [3]],
        ...      "clicks": [[False, True], [True]]}
        ... )
        >>> count_sessions([page], "cells.parquet")
        2
        >>> import pyarrow.parquet as pq
        >>> cells = pq.read_table("cells.parquet")
        >>> cells.select(["document", "position", "impressions", "clicks"]).to_pylist()[1]
        {'document': 3, 'position': 1, 'impressions': 2, 'clicks': 1}
    """
    batches = _checked(sessions)
    first = next(batches, empty(EMPTY))
    features = bias_features(first.schema)
    for name in bias:
        check_choice(name, features, field="bias")
    check_free([*lane_columns(first.schema), *bias])
    pages = [*lane_columns(first.schema), "split", "query"]
    keys = [*pages, "document", "position", *bias]
    statement = COUNT.format(
        keys=_quoted(keys),
        pages=_quoted(pages),
        bias=" ".join(f"unnest({_quoted([name])}) AS {_quoted([name])}," for name in bias),
    )
    with database(path, memory, threads) as connection:
        found = select(connection, statement, pages=chain([first], batches))
        return write_cells(path, found, seen)


def add_up_cells(
    cells: Iterable[pa.RecordBatch],
    path: str | Path,
    *,
    memory: str = MEMORY,
    threads: int | None = None,
    seen: Mapping | None = None,
) -> int:
    """Cells, perhaps repeated -> cells file, sorted and distinct.

    Args:
        cells: batches with the same key columns, then impressions and clicks.
        path, memory, threads, seen: see `count_sessions`.

    Returns:
        The number of cells.
    """
    batches = iter(cells)
    first = next(batches, empty(NO_CELLS))
    keys = [name for name in first.schema.names if name not in ("impressions", "clicks")]
    with database(path, memory, threads) as connection:
        found = select(connection, ADD_UP.format(keys=_quoted(keys)), cells=chain([first], batches))
        return write_cells(path, found, seen)


def write_cells(path: str | Path, cells: Iterable[pa.RecordBatch], seen: Mapping | None) -> int:
    """Write cells, all or nothing; the same bytes however they are cut into batches."""
    return write_batches(path, cells, group=GROUP, seen=seen)


@contextmanager
def database(path: str | Path, memory: str, threads: int | None) -> Iterator:
    """A DuckDB connection, with a folder beside `path` for data beyond its memory."""
    path = Path(path)
    folder = path.with_name(f".{path.name}.{secrets.token_hex(4)}.spill")
    settings = {
        "memory_limit": memory,
        "temp_directory": str(folder),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # The statements sort by themselves.
        "preserve_insertion_order": False,
    }
    if threads:
        settings["threads"] = threads
    try:
        connection = duckdb.connect(config=settings)
    except duckdb.Error as error:
        raise InputError(
            f"{memory!r}: {error}", field="memory", expected="a size such as 2GB"
        ) from error
    try:
        with connection:
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"DuckDB has too little memory or disk: {str(error)[:300]}",
            path=path,
            field="memory",
            expected=f"more than {memory}, or more room on the disk",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def select(
    connection, statement: str, **streams: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The result of a statement, batch by batch.

    Args:
        connection: of `database`.
        statement: SQL that uses the streams as tables.
        streams: batches by table, one or more each. A stream is read once and never whole.

    Yields:
        At least one batch, which may be empty.
    """
    with _registered(connection, streams):
        found = connection.sql(statement).to_arrow_reader(100_000)
        yield empty(found.schema)
        yield from found


def execute(connection, statement: str, **streams: Iterable[pa.RecordBatch]) -> None:
    """Run a statement without a result, such as one that makes a table; see `select`."""
    with _registered(connection, streams):
        connection.execute(statement)


@contextmanager
def _registered(connection, streams: Mapping[str, Iterable[pa.RecordBatch]]) -> Iterator[None]:
    """Register streams as tables for one statement."""
    failures: list[Exception] = []
    for name, batches in streams.items():
        batches = iter(batches)
        first = next(batches)
        guarded = _guarded(chain([first], batches), failures)
        connection.register(name, pa.RecordBatchReader.from_batches(first.schema, guarded))
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError):
        if failures:
            raise failures[0] from None
        raise


def _guarded(batches: Iterator[pa.RecordBatch], failures: list) -> Iterator[pa.RecordBatch]:
    """The batches. Their exceptions are kept, since DuckDB hides them behind its own."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise


def _checked(sessions) -> Iterator[pa.RecordBatch]:
    if isinstance(sessions, str | Path):
        sessions = [sessions]
    schema = None
    for one in sessions:
        from_file = isinstance(one, str | Path)
        for batch in read_sessions(one) if from_file else [conform(one, None)]:
            schema = schema or batch.schema
            if batch.schema != schema:
                raise InputError(
                    f"the columns are {described(batch.schema)}",
                    path=one if from_file else None,
                    expected=f"{described(schema)}, as before",
                )
            yield batch


def quoted(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str | Path) -> str:
    """A text, such as a path, as SQL quotes it."""
    return "'" + str(value).replace("'", "''") + "'"


def _quoted(names: Iterable[str]) -> str:
    """Quoted SQL names."""
    return ", ".join(map(quoted, names))

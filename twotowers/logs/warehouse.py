"""DuckDB for readers of logs: a database within a memory limit, and streams as its tables."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import duckdb
import pyarrow as pa

from twotowers.errors import InputError

MEMORY = "3GB"
"""Memory limit of DuckDB. The process needs about half a gigabyte more."""


@contextmanager
def database(path: object) -> Iterator:
    """A DuckDB connection for the log of a path, with a folder for data beyond its memory."""
    settings = {
        "memory_limit": MEMORY,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # The statements sort by themselves.
        "preserve_insertion_order": False,
    }
    try:
        with (
            tempfile.TemporaryDirectory(prefix="twotowers-") as folder,
            duckdb.connect(config={**settings, "temp_directory": folder}) as connection,
        ):
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"DuckDB has too little memory or disk: {str(error)[:300]}",
            path=path,
            expected=f"more than {MEMORY}, or more space on the disk",
        ) from error


def execute(connection, statement: str, rows: Iterable[pa.RecordBatch]) -> bool:
    """Run a statement without a result, such as one that makes a table, if there are rows.

    `rows` is a table of the statement; it is read once and never whole.
    """
    failures: list[Exception] = []
    batches = iter(rows)
    if (first := next(batches, None)) is None:
        return False
    guarded = _guarded(chain([first], batches), failures)
    connection.register("rows", pa.RecordBatchReader.from_batches(first.schema, guarded))
    try:
        connection.execute(statement)
    except (duckdb.Error, pa.ArrowException, OSError):
        if failures:
            raise failures[0] from None
        raise
    return True


def _guarded(batches: Iterator[pa.RecordBatch], failures: list) -> Iterator[pa.RecordBatch]:
    """The batches. Their exceptions are kept, since DuckDB hides them behind its own."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise

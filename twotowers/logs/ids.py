"""Ids of any kind as numbers, and the table that leads back to the ids.

Fits index arrays by query and document. Other libraries index embeddings. Both need numbers without
gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.batches import read_batches
from twotowers.files.tables import opened
from twotowers.logs.sessions import read_sessions, seen_in
from twotowers.logs.warehouse import MEMORY, database, execute, quoted, select, write_cells

PAIRS = """
CREATE TEMP TABLE numbers AS
SELECT
    dense_rank() OVER (ORDER BY query) - 1 AS query_number,
    row_number() OVER (PARTITION BY query ORDER BY document) - 1 AS document_number,
    row_number() OVER (ORDER BY query, document) AS pair_number,
    query, document
FROM ({pairs})
"""
OF_CELLS = "SELECT DISTINCT query, document FROM cells"
OF_PAGES = "SELECT DISTINCT query, unnest(documents) AS document FROM pages"
TABLE = "SELECT * FROM numbers ORDER BY pair_number"
NUMBERED = """
SELECT {lanes} query_number AS query, document_number::INTEGER AS document, {rest}
FROM cells JOIN numbers USING (query, document)
ORDER BY {lanes} query_number, document_number, {rest}
"""
SHOWN = """
SELECT query_number + 1 AS query, pair_number AS pair
FROM (
    SELECT row, query, unnest(documents) AS document,
        unnest(range(1, len(documents) + 1)) AS position
    FROM pages
) JOIN numbers USING (query, document)
ORDER BY row, position
"""


def beside(path: str | Path) -> Path:
    """The path of a file's table of numbers: `cells.numbers.parquet` for `cells.parquet`."""
    return Path(path).with_suffix(".numbers.parquet")


def number_cells(cells: str | Path, path: str | Path, *, memory: str = MEMORY) -> int:
    """Number the ids of a cells file: queries from 0, documents from 0 within their query.

    Numbers follow the order of the ids, so equal logs get equal numbers.

    Args:
        cells: the cells file. Its ids are numbers or text.
        path: the cells file to write: query int64, document int32. `beside(path)` is written,
            too: query_number, document_number, pair_number (from 1), query, document.
        memory: memory limit of DuckDB.

    Returns:
        The number of cells.
    """
    with opened(cells) as file:
        names = file.schema_arrow.names
    at = names.index("query") if "query" in names else len(names)

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([], schema=_schema(cells))
        yield from read_batches(cells, names)

    lanes = "".join(f"{quoted(name)}, " for name in names[:at])
    rest = ", ".join(quoted(name) for name in names[at:] if name not in ("query", "document"))
    with database(path, memory, None) as connection:
        _number(connection, OF_CELLS, path, cells=batches())
        statement = NUMBERED.format(lanes=lanes, rest=rest)
        found = select(connection, statement, cells=batches())
        return write_cells(path, found, seen_in(cells))


def _schema(path: str | Path) -> pa.Schema:
    with opened(path) as file:
        return file.schema_arrow.remove_metadata()


def _number(connection, pairs: str, path: str | Path, **streams) -> None:
    """Make the table of numbers, and write it beside `path`."""
    execute(connection, PAIRS.format(pairs=pairs), **streams)
    write_cells(beside(path), select(connection, TABLE), None)


# CLAX


def write_clax(sessions: str | Path, path: str | Path, *, memory: str = MEMORY) -> int:
    """Write a sessions file as the parquet that CLAX reads, a row per page.

    Args:
        sessions: the sessions file.
        path: the parquet file to write: query_id (int32, from 1), query_doc_ids (list of int32,
            a number per query and document, from 1, since CLAX pads with 0), clicks (list of
            uint8). `beside(path)` is written, too: query_number (query_id - 1),
            document_number, pair_number (as in query_doc_ids), query, document.
        memory: memory limit of DuckDB.

    Returns:
        The number of pages.
    """
    with database(path, memory, None) as connection:
        _number(connection, OF_PAGES, path, pages=read_sessions(sessions))
        ((pairs,),) = connection.execute("SELECT count(*) FROM numbers").fetchall()
        if pairs >= 2**31:
            raise InputError(
                f"{pairs:,} pairs of query and document", path=sessions, expected="below 2^31"
            )
        shown = select(connection, SHOWN, pages=_with_rows(sessions))
        return write_cells(path, _clax(read_sessions(sessions), shown, sessions), None)


def _with_rows(sessions: str | Path) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in read_sessions(sessions):
        rows = pa.array(range(row, row + len(batch)), pa.int64())
        yield pa.RecordBatch.from_arrays(
            [rows, batch["query"], batch["documents"]], names=["row", "query", "documents"]
        )
        row += len(batch)


def _clax(pages: Iterable, shown: Iterator, path: str | Path) -> Iterator[pa.RecordBatch]:
    """Pages in CLAX's columns. `shown` has the numbers of all documents in the same order."""
    waiting, row = (
        pa.table({"query": pa.array([], pa.int64()), "pair": pa.array([], pa.int64())}),
        0,
    )
    for page in pages:
        lengths = page["documents"].value_lengths().to_numpy()
        if len(lengths) and not lengths.min():
            raise InputError(
                f"row {row + int(lengths.argmin()) + 1}: no document",
                path=path,
                field="documents",
                expected="a document or more",
            )
        offsets = page["documents"].offsets
        needed = int(lengths.sum())
        while len(waiting) < needed:
            batch = next(shown)
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        here, waiting = waiting.slice(0, needed).combine_chunks(), waiting.slice(needed)
        row += len(page)
        numbers = {name: here[name].combine_chunks().cast(pa.int32()) for name in here.column_names}
        columns = {
            "query_id": numbers["query"].take(offsets[:-1]),
            "query_doc_ids": pa.ListArray.from_arrays(offsets, numbers["pair"]),
            "clicks": pa.ListArray.from_arrays(offsets, page["clicks"].values.cast(pa.uint8())),
        }
        yield pa.RecordBatch.from_pydict(columns)

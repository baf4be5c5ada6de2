"""Streams of pages, counted."""

import pyarrow as pa

from twotowers.logs.log import Log
from twotowers.logs.sessions import Stream


def seen(log: pa.Table) -> dict[str, int]:
    """What the reader counted beside clicks, such as pages left out, from the log's metadata."""
    return {name.decode(): int(count) for name, count in (log.schema.metadata or {}).items()}


def cells_of(stream: Stream) -> pa.Table:
    """The cells of a stream; what its reader left out is metadata."""
    cells = Log.of_batches(stream.batches).count().table()
    return cells.replace_schema_metadata({name: str(each) for name, each in stream.seen.items()})


def counts_by_cell(cells: pa.Table) -> dict[tuple, tuple[int, int]]:
    """Impressions and clicks, the last two columns, by the others; no cell is there twice."""
    rows = [tuple(row.values()) for row in cells.to_pylist()]
    table = {row[:-2]: row[-2:] for row in rows}
    assert len(table) == len(rows)
    assert list(table) == sorted(table)
    return table

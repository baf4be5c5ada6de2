"""Streams of pages, counted in memory: another way than the library's, which counts by DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from twotowers.logs.counted import count_cells
from twotowers.logs.sessions import Stream


def seen(log: pa.Table) -> dict[str, int]:
    """What the reader counted beside clicks, such as pages left out, from the log's metadata."""
    return {name.decode(): int(count) for name, count in (log.schema.metadata or {}).items()}


def cells_of(stream: Stream) -> pa.Table:
    """The cells of a stream with whole numbers as ids; what its reader left out is metadata."""
    pages = pa.Table.from_batches(stream.batches)
    lengths = pages["documents"].combine_chunks().value_lengths().to_numpy()
    document, clicks = (
        pages[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        for name in ("documents", "clicks")
    )
    ends = np.cumsum(lengths)
    position = np.arange(1, ends[-1] + 1) - np.repeat(ends - lengths, lengths)
    query = np.repeat(pages["query"].to_numpy(), lengths)
    once = np.ones(len(document), np.int64)
    cells = {"query": query, "document": document, "position": position.astype(np.int32)}
    cells |= {"impressions": once, "clicks": clicks.astype(np.int64)}
    return count_cells(cells, stream.seen)


def counts_by_cell(cells: pa.Table) -> dict[tuple, tuple[int, int]]:
    """Impressions and clicks, the last two columns, by the others; no cell is there twice."""
    rows = [tuple(row.values()) for row in cells.to_pylist()]
    table = {row[:-2]: row[-2:] for row in rows}
    assert len(table) == len(rows)
    assert list(table) == sorted(table)
    return table

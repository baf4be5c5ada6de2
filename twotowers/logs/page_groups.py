"""Pages of a file, counted by query-document pair and sign: out of core, by DuckDB.

A sign is a small number for what a click model tells apart at one position of a page, such as the
position and whether it was clicked. Pages are read, signed and forgotten, some thousands at a time.
So memory grows with the pairs and not with the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.logs.page_arrays import checked_pages, numpy_of, shown_and_clicked
from twotowers.logs.warehouse import MEMORY, database, select

COUNT = """
SELECT query, document, sign, count(*) AS number
FROM shown
GROUP BY query, document, sign
ORDER BY query, document, sign
"""


def count_by_pair(
    path: str | Path,
    sign: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    positions: int,
    rows: np.ndarray | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
) -> tuple[pa.Table, np.ndarray, np.ndarray, np.ndarray]:
    """Count the signs of each query-document pair.

    Args:
        path, positions, rows: see `twotowers.logs.page_arrays.checked_pages`.
        sign: clicks [pages, positions] bool and where (False behind the end of a page) -> signs,
            [pages, positions] unsigned integers.
        memory, threads: see `twotowers.logs.warehouse.count_sessions`. They do not change what is
            found.

    Returns:
        The columns query and document of the pairs, sorted by both. Then, for each pair and sign
        that occur together, sorted by both, [groups] each: the pair's number, the sign, and how
        often the log shows the pair with it.

    Example:
        >>> from twotowers.logs.sessions import write_sessions
        >>> page = {"split": ["a"] * 2, "query": [7] * 2, "documents": [[3, 1], [3]],
        ...         "clicks": [[0, 1], [1]]}
        >>> path = "sessions.parquet"
        >>> write_sessions(path, [pa.table(page)])
        2
        >>> clicked = lambda clicks, where: clicks.astype(np.uint8)
        >>> pairs, pair, sign, number = count_by_pair(path, clicked, positions=2)
        >>> pairs["document"].to_pylist(), pair.tolist(), sign.tolist()
        ([1, 3], [0, 1, 1], [1, 0, 1])
    """
    batches = (
        _shown(batch, where, sign(clicks, where))
        for batch, clicks, where in _laid_out(path, positions, rows)
    )
    ids, groups, above, pairs = [], [], None, 0
    with database(path, memory, threads) as connection:
        for batch in select(connection, COUNT, shown=batches):
            if len(batch):
                new = _new_pairs(batch, above)
                pair, above = pairs + np.cumsum(new) - 1, batch.slice(len(batch) - 1)
                pairs = int(pair[-1]) + 1
                ids.append(batch.select(["query", "document"]).filter(pa.array(new)))
                groups.append([pair, *map(numpy_of, batch.columns[2:])])
    columns = (np.concatenate(column) for column in zip(*groups, strict=True))
    return pa.Table.from_batches(ids), *columns


def count_by_position(
    path: str | Path,
    sign: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    positions: int,
    signs: int,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Count the signs of each position: [positions, signs].

    Args:
        path, sign, positions, rows: see `count_by_pair`.
        signs: number of signs.
    """
    found = np.zeros(positions * signs, np.int64)
    for _, clicks, where in _laid_out(path, positions, rows):
        cell = np.arange(positions) * signs + sign(clicks, where)
        found += np.bincount(cell[where], minlength=len(found))
    return found.reshape(positions, signs)


def _laid_out(path, positions, rows) -> Iterator[tuple[pa.RecordBatch, np.ndarray, np.ndarray]]:
    """Some pages at a time; their clicks and where documents are, [pages, positions] bool."""
    for _, batch, lengths in checked_pages(path, positions=positions, rows=rows):
        where = np.arange(positions) < lengths[:, None]
        clicks = np.zeros(where.shape, bool)
        clicks[where] = numpy_of(shown_and_clicked(batch)[1])
        yield batch, clicks, where


def _shown(batch: pa.RecordBatch, where: np.ndarray, signs: np.ndarray) -> pa.RecordBatch:
    """A row per shown document."""
    query = batch["query"].take(pc.list_parent_indices(batch["documents"]))
    columns = [query, shown_and_clicked(batch)[0], pa.array(signs[where])]
    return pa.RecordBatch.from_arrays(columns, names=["query", "document", "sign"])


def _new_pairs(batch: pa.RecordBatch, above: pa.RecordBatch | None) -> np.ndarray:
    """[rows] bool, whether the pair of a row is not that of the row above."""
    rows = pa.Table.from_batches([batch] if above is None else [above, batch])
    new = np.zeros(len(rows) - 1, bool)
    for name in ("query", "document"):
        new |= pc.not_equal(rows[name].slice(1), rows[name].slice(0, len(new))).to_numpy()
    return np.append(True, new) if above is None else new

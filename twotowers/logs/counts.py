"""Impressions and clicks of cells (query, document, position) in memory, dense or listed.

For short lists all documents x positions are held, which is fast. For long lists only the cells
that were shown are held, so that memory grows with these alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Array = Any
"""A NumPy or a JAX array."""

LONGEST_DENSE = 32
"""The longest lists that are held densely: 1,024 cells per query."""


@dataclass(frozen=True)
class Counts:
    """Counts of logs, as fits take them: NumPy or JAX arrays, dense over cells or listed.

    Attributes:
        impressions: dense [..., queries, documents, positions], or listed [..., queries, rows],
            where they are 0 behind the last cell of a query.
        clicks: the same shape, at most `impressions`.
        document, position: if listed, [..., queries, rows] the list index of each cell's document,
            and its position from 0. None if dense.
    """

    impressions: Array
    clicks: Array
    document: Array | None = None
    position: Array | None = None

    @property
    def listed(self) -> bool:
        """Whether the shown cells are listed."""
        return self.document is not None

    @property
    def sessions(self) -> Array:
        """[..., queries] sessions of each query: every session shows one document first."""
        if self.listed:
            return (self.impressions * (self.position == 0)).sum(-1)
        return self.impressions[..., 0].sum(-1)

    @property
    def shown(self) -> Array:
        """[..., queries] impressions of each query, at all positions together."""
        return self.total(self.impressions)

    def total(self, values: Array) -> Array:
        """[..., queries] sums of values of the cells."""
        return values.sum(-1 if self.listed else (-2, -1))

    def spread(self, values: Array) -> Array:
        """[..., queries] values in a shape that broadcasts to the cells."""
        return values[..., None] if self.listed else values[..., None, None]

    @property
    def place(self) -> np.ndarray:
        """The position of each cell from 0, in a shape that broadcasts to the cells."""
        return self.position if self.listed else np.arange(self.impressions.shape[-1])

    def of_documents(self, values: np.ndarray) -> np.ndarray:
        """[..., queries, documents] values in a shape that broadcasts to the cells."""
        if self.listed:
            return np.take_along_axis(values, self.document.astype(np.int64), -1)
        return values[..., None]

    def of_positions(self, values: np.ndarray) -> np.ndarray:
        """[positions] values in a shape that broadcasts to the cells."""
        return values[self.place]

    def at(self, index) -> Counts:
        """Those of some logs or queries."""
        columns = self.impressions, self.clicks, self.document, self.position
        return Counts(*(None if column is None else column[index] for column in columns))

    def of_log(self, number: int) -> Counts:
        """One of several logs."""
        return self.at(number)


@dataclass(frozen=True)
class Cells:
    """Counts of one log, a row per shown cell of indices from 0. Rows are sorted and distinct."""

    query: np.ndarray
    document: np.ndarray
    position: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray


def of_cells(logs: Iterable[Cells], queries: int, length: int) -> Counts:
    """Some logs side by side. Arguments as of `lay_out`, but for the logs."""
    numbered = (
        ((log.query * length + log.document) * length + log.position, log.impressions, log.clicks)
        for log in logs
    )
    return lay_out(numbered, queries, length)


def lay_out(
    logs: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], queries: int, length: int
) -> Counts:
    """Some logs side by side, [logs, queries, ...], in the layout that suits lists of this length.

    Each of `logs` has cell numbers, (query x length + document) x length + position, impressions
    and clicks; [cells] each. Of a generator, short lists need one log at a time in memory. The
    types are the smallest unsigned ones that hold the counts.
    """
    layout = _dense if length <= LONGEST_DENSE else _listed
    return layout(logs, queries, length)


def _dense(logs, queries: int, length: int) -> Counts:
    # Each log gets the smallest type that holds it. The stack gets the widest of these types.
    counts = [_dense_log(*log, (queries, length, length)) for log in logs]
    return Counts(*(np.stack(arrays) for arrays in zip(*counts, strict=True)))


def _dense_log(cell, shown, clicked, shape) -> tuple[np.ndarray, np.ndarray]:
    kind = np.min_scalar_type(shown.max(initial=0))
    impressions, clicks = (np.zeros(shape, kind) for _ in range(2))
    impressions.reshape(-1)[cell] = shown.astype(kind)
    clicks.reshape(-1)[cell] = clicked.astype(kind)
    return impressions, clicks


def _listed(logs, queries: int, length: int) -> Counts:
    sorted_logs = [_sorted(*log) for log in logs]
    per_query = [np.bincount(log[0] // length**2, minlength=queries) for log in sorted_logs]
    rows = max(int(cells.max(initial=1)) for cells in per_query)
    most = max(int(log[1].max(initial=0)) for log in sorted_logs)
    shape = len(sorted_logs), queries, rows
    document, position = (np.zeros(shape, np.min_scalar_type(length - 1)) for _ in range(2))
    impressions, clicks = (np.zeros(shape, np.min_scalar_type(most)) for _ in range(2))
    for number, ((cell, shown, clicked), cells) in enumerate(
        zip(sorted_logs, per_query, strict=True)
    ):
        query, inside = np.divmod(cell, length**2)
        row = np.arange(len(cell)) - (np.cumsum(cells) - cells)[query]
        document[number, query, row], position[number, query, row] = np.divmod(inside, length)
        impressions[number, query, row], clicks[number, query, row] = shown, clicked
    return Counts(impressions, clicks, document, position)


def _sorted(cell, shown, clicked):
    if not (cell[1:] > cell[:-1]).all():
        order = np.argsort(cell)
        cell, shown, clicked = cell[order], shown[order], clicked[order]
    return cell, shown, clicked


def added(one: Cells, other: Cells) -> Cells:
    """The counts of two logs of the same queries together."""
    both = pd.concat([pd.DataFrame(vars(log)) for log in (one, other)])
    cells = both.groupby(["query", "document", "position"], as_index=False).sum()
    return Cells(*(cells[name].to_numpy() for name in cells))

"""Counts of a click log: impressions and clicks by some columns, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from twotowers.files.blocks import blocks as pieces
from twotowers.files.blocks import in_order
from twotowers.files.tables import write_batches
from twotowers.logs.frames import PANDAS, Native, native
from twotowers.logs.numbering import Column, Ids, Spill
from twotowers.logs.sessions import described

if TYPE_CHECKING:
    from twotowers.logs.log import Block

SIZE = 1 << 21
"""About how many shown documents a block of a log has."""
WIDEST = 1 << 62
"""Keys are below it."""
MEMORY = 4 * 10**9
"""Bytes. Half of it may hold pages, the others are in a file. Half of it holds keys."""
CELL = ("query", "document", "position")
COUNTS = ("impressions", "clicks")
NO_CELLS = pa.schema([("split", pa.string()), *((name, pa.int64()) for name in (*CELL, *COUNTS))])
"""The columns of a counted log without rows."""
GROUP = 1 << 20
"""Rows of a row group of a file of counts."""


@dataclass(eq=False)
class Counts:
    """Impressions and clicks by some columns: one table, a row per combination of values.

    Attributes:
        columns: column -> [rows] numbers. Rows are distinct, and sorted by the first column, ...
        impressions, clicks: [..., rows] int64. Axes in front are lanes.
        ids: column -> what its numbers stand for.
        seen: other counts of the reader.
        kind: the library of the frames that answers come in.
    """

    columns: Mapping[str, np.ndarray]
    impressions: np.ndarray
    clicks: np.ndarray
    ids: Mapping[str, Ids]
    seen: Mapping[str, int] = field(default_factory=dict)
    kind: str = PANDAS

    @staticmethod
    def joined(parts: Sequence[Counts]) -> Counts:
        """Counts of portions of a log, one behind the other."""
        first, *others = parts
        if not others:
            return first
        names = first.columns
        columns = {name: np.concatenate([each.columns[name] for each in parts]) for name in names}
        counts = {name: np.concatenate([getattr(each, name) for each in parts]) for name in COUNTS}
        return replace(first, columns=columns, **counts)

    @classmethod
    def of_batches(
        cls, batches: Iterable[pa.RecordBatch], *, texts: bool = False, memory: int = MEMORY
    ) -> Counts:
        """A log that is counted already.

        Args:
            batches: columns of any names, impressions and clicks. Rows may repeat.
            texts, memory: see `Log.of_batches`.
        """
        columns: dict[str, Column] = {}
        counts, spill = {"impressions": [], "clicks": []}, Spill(memory // 2)
        for table in gathered(batches, NO_CELLS):
            for name in table.column_names:
                if name in counts:
                    counts[name].append(table[name].to_numpy())
                else:
                    column = columns.setdefault(name, Column(spill, texts and name != "split"))
                    column.append(table[name])
        ids = {name: column.finish() for name, column in columns.items()}
        own = {name: np.concatenate(column.parts) for name, column in columns.items()}
        return cls(*added_up(own, *map(np.concatenate, counts.values()), ids), ids)

    def _added_up(self) -> Counts:
        merged = added_up(self.columns, self.impressions, self.clicks, self.ids)
        return Counts(*merged, self.ids, self.seen, self.kind)

    def __len__(self) -> int:
        return self.impressions.shape[-1]

    def count(self, by: Sequence[str]) -> Counts:
        """Impressions and clicks by fewer columns; see `Log.count`."""
        if list(by) == list(self.columns):
            return self
        ids, own = ({name: each[name] for name in by} for each in (self.ids, self.columns))
        return replace(self, columns=own, ids=ids)._added_up()

    def portions(self, by: Sequence[str]) -> Iterator[Counts]:
        """What `count` gives; see `Log.portions`."""
        yield self.count(by)

    @property
    def page_columns(self) -> list[str]:
        """The columns; a row has no lists."""
        return [*self.ids]

    def where(self, rows: np.ndarray) -> Counts:
        """Some rows."""
        columns = {name: each[rows] for name, each in self.columns.items()}
        return replace(
            self,
            columns=columns,
            impressions=self.impressions[..., rows],
            clicks=self.clicks[..., rows],
        )

    def values(self, name: str) -> pa.Array:
        """[rows] a column as in the log."""
        return self.ids[name].take(self.columns[name])

    def groups(self, by: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The combinations of some columns, in their order.

        Args:
            by: their names.

        Returns:
            [rows] the number of the row's combination, from 0; and the first row of each.
        """
        key = key_of({name: self.columns[name] for name in by}, self.ids)
        steps = np.diff(key, prepend=-1)
        if (steps >= 0).all():  # Rows are sorted by their first columns.
            return np.cumsum(steps > 0) - 1, np.flatnonzero(steps)
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return number, first

    def table(self) -> pa.Table:
        """The counts with the values of the log."""
        return pa.Table.from_batches([*self.batches(len(self))], self.schema)

    def frame(self) -> Native:
        """The counts with the values of the log: a column each, impressions and clicks."""
        return native(self.table(), self.kind)

    def write(self, path: str | Path) -> int:
        """Write the counts as parquet, all or nothing; the number of rows."""
        return write_counts(path, [self], self.seen)

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of `table`."""
        own = [(name, ids.type) for name, ids in self.ids.items()]
        return pa.schema([*own, ("impressions", pa.int64()), ("clicks", pa.int64())])

    def batches(self, rows: int = GROUP) -> Iterator[pa.RecordBatch]:
        """The rows of `table`, some at a time."""
        for start in range(0, max(len(self), 1), max(rows, 1)):
            own = slice(start, start + rows)
            columns = [ids.take(self.columns[name][own]) for name, ids in self.ids.items()]
            counts = [pa.array(each[own]) for each in (self.impressions, self.clicks)]
            yield pa.RecordBatch.from_arrays([*columns, *counts], schema=self.schema)


Part = tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]
Columns = Mapping[str, tuple[Ids, Callable[["Block"], np.ndarray]]]
"""Column -> what its numbers stand for, and the [shown] numbers of a block."""


class Mixed(Exception):
    """The columns of a log change: what they are, and what they were."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def write_counts(path: str | Path, portions: Iterable[Counts], seen: Mapping[str, int]) -> int:
    """Write portions of counts as one parquet file, all or nothing; the number of rows."""
    batches = (batch for each in portions for batch in each.batches())
    return write_batches(path, batches, group=GROUP, seen=seen)


def gathered(batches: Iterable[pa.RecordBatch], empty: pa.Schema) -> Iterator[pa.Table]:
    """The batches, so many together that about `SIZE` documents are shown; at least one table."""
    waiting: list[pa.RecordBatch] = []
    size, row, schema = 0, 0, None
    for batch in batches:
        schema = schema or batch.schema
        if batch.schema != schema:
            problem = f"row {row + 1}: the columns are {described(batch.schema)} from here on"
            raise Mixed(problem, f"{described(schema)}, as before")
        row += len(batch)
        waiting.append(batch)
        lists = "documents" in batch.schema.names
        size += len(batch["documents"].values) if lists else len(batch)
        if size >= SIZE:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
    if schema is None:
        yield empty.empty_table()


def key_of(columns: Mapping[str, np.ndarray], ids: Mapping[str, Ids]) -> np.ndarray:
    """[rows] a number per row, by which rows are sorted as by their columns."""
    key, width = np.zeros(len(next(iter(columns.values()))), np.int64), 1
    for name, each in columns.items():
        if width * ids[name].size >= WIDEST:
            distinct, key = np.unique(key, return_inverse=True)
            width = len(distinct)
        key *= ids[name].size
        key += each
        width *= ids[name].size
    return key


def added_up(columns, shown, clicks, ids) -> Part:
    """Rows in any order -> distinct and sorted ones."""
    key = key_of(columns, ids)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = order[starts]
    shown, clicks = (
        np.add.reduceat(each[..., order], starts, axis=-1) if len(starts) else each
        for each in (shown, clicks)
    )
    return {name: each[first] for name, each in columns.items()}, shown, clicks


def block_keys(block: Block, columns: Columns) -> np.ndarray:
    """[shown] keys of the columns."""
    ids = {name: each for name, (each, _) in columns.items()}
    return key_of({name: values(block) for name, (_, values) in columns.items()}, ids)


def weighed(blocks: Sequence[Block], columns: Columns) -> Part:
    """The counts of blocks whose rows are several pages."""
    own = {
        name: np.concatenate([values(each) for each in blocks])
        for name, (_, values) in columns.items()
    }
    shown = np.concatenate([np.repeat(each.times, each.lengths) for each in blocks])
    click = np.concatenate([each.click for each in blocks])
    return added_up(own, shown, shown * click, {name: ids for name, (ids, _) in columns.items()})


def _numbers(keys: np.ndarray, columns: Columns) -> dict[str, np.ndarray]:
    """column -> [rows] the numbers that keys consist of."""
    numbers = {}
    for name, (ids, _) in reversed(columns.items()):
        rest, kind = keys // ids.size, np.int32 if ids.size <= 2**31 else np.int64
        numbers[name], keys = (keys - rest * ids.size).astype(kind), rest
    return {name: numbers[name] for name in columns}


def marked(
    blocks: Sequence[Block], columns: Columns, low: int, high: int, number: int
) -> np.ndarray:
    """The keys from `low` to below `high`, which are `number` many: twice each, plus one for a
    click."""
    shown = sum(len(each.click) for each in blocks)

    def some(block: Block) -> np.ndarray:
        own = block_keys(block, columns)
        own *= 2
        own += block.click
        return own if number == shown else own[(own >= 2 * low) & (own < 2 * high)]

    keys, end = np.empty(number, np.int64), 0
    for own in in_order(some, list(blocks), cells=shown):
        keys[end : end + len(own)] = own
        end += len(own)
    return keys


def run_lengths(keys: np.ndarray, columns: Columns) -> Part:
    """The counts of such keys.

    They are sorted in place. If few keys are possible, they are addressed directly instead.
    """
    width = prod(ids.size for ids, _ in columns.values())
    if 2 * width <= len(keys):
        others, clicks = np.bincount(keys, minlength=2 * width).reshape(-1, 2).T
        key = np.flatnonzero(others + clicks)
        return _numbers(key, columns), (others + clicks)[key], clicks[key]
    keys.sort()
    # Pieces end between runs, so that each is counted by itself.
    ends = [some.start for some in pieces(len(keys))][1:]
    ends = [0, *np.searchsorted(keys, keys[ends] & ~1), len(keys)]
    runs = [keys[start:end] for start, end in pairwise(ends)]
    del keys  # They are many more than what is left.
    parts = [*in_order(lambda some: _counted(some, columns), runs, cells=ends[-1])]
    del runs
    whole = {name: np.concatenate([part.pop(name) for part in parts]) for name in [*parts[0]]}
    shown, clicks = (whole.pop(name).astype(np.int64) for name in COUNTS)
    return whole, shown, clicks


def _counted(keys: np.ndarray, columns: Columns) -> dict[str, np.ndarray]:
    """The counts of sorted keys."""
    click, keys = keys & 1, keys >> 1
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(starts, append=len(keys)), np.add.reduceat(click, starts)
    own = (each.astype(np.int32) for each in counts)
    return {**_numbers(keys[starts], columns), **dict(zip(COUNTS, own, strict=True))}


def count_cells(columns: Mapping[str, Any], seen: Mapping[str, int]) -> pa.Table:
    """Impressions and clicks of equal cells, added up: a table, sorted by its first columns.

    Args:
        columns: what tells cells apart, and impressions and clicks: [rows] each.
        seen: other counts of the source, for the table's metadata.
    """
    counts = {name: pa.array(columns[name], pa.int64()) for name in COUNTS}
    table = Counts.of_batches([pa.record_batch({**columns, **counts})]).table()
    return table.replace_schema_metadata({name: str(count) for name, count in seen.items()})

"""A click log as pages in flat arrays, and its counts: the two types that every fit starts from.

Ids become numbers once, when the log is read. To count, each row becomes one 64-bit key, keys are
sorted in place, and equal neighbours are one row of the counts. A log that is larger than memory
is counted block by block, and the counts of its blocks are added up in the same way.

    >>> pages = {"query": [7, 7], "documents": [["a", "b"], ["b"]],
    ...          "clicks": [[False, True], [True]]}
    >>> log = Log.of_batches([pa.record_batch(pages)])
    >>> log.count(["query", "document"]).table().to_pylist()[1]
    {'query': 7, 'document': 'b', 'impressions': 2, 'clicks': 2}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from operator import mul

import numpy as np
import pyarrow as pa

from twotowers.files.blocks import in_order
from twotowers.logs.numbering import Column, Ids, Spill

MOST = 1 << 27
"""Keys that are sorted at a time: a gigabyte."""
SIZE = 1 << 21
"""About how many shown documents a block of a log has."""
WIDEST = 1 << 62
"""Keys are below it."""
MEMORY = 4 << 30
"""Bytes of a log that are kept in memory. The others are in a file."""
CELL = ("query", "document", "position")
TEXTS = ("query", "document")
"""Columns of text files that are whole numbers if all of their values could be."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some pages of a log.

    Attributes:
        before: pages of the log before these.
        lengths: [pages] documents of each page.
        click: [shown] bool: was it clicked, of the documents of all pages one after the other.
        of_pages, of_documents: column -> [pages] or [shown] numbers (`Log.ids`).
    """

    before: int
    lengths: np.ndarray
    click: np.ndarray
    of_pages: Mapping[str, np.ndarray]
    of_documents: Mapping[str, np.ndarray]

    @cached_property
    def page(self) -> np.ndarray:
        """[shown] the page of each document, from 0."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def position(self) -> np.ndarray:
        """[shown] the position of each document, from 0."""
        starts = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        return np.arange(len(self.click)) - np.repeat(starts, self.lengths)

    @property
    def last_click(self) -> np.ndarray:
        """[shown] the position from 1 of the last click above, 0 for none."""
        first = self.page * (int(self.lengths.max(initial=0)) + 1)
        highest = np.maximum.accumulate(first + np.where(self.click, self.position + 1, 0))
        return np.maximum(np.append(0, highest)[: len(highest)] - first, 0)

    def column(self, name: str) -> np.ndarray:
        """[shown] numbers of a column, or of what follows from the pages."""
        if name in self.of_pages:
            return np.repeat(self.of_pages[name], self.lengths)
        return self.of_documents[name] if name in self.of_documents else getattr(self, name)

    def where(self, length: int) -> np.ndarray:
        """[pages, length] bool: where pages of at most this length show a document."""
        return np.arange(length) < self.lengths[:, None]

    def filter(self, rows: np.ndarray) -> Block:
        """Some of the pages: [pages] bool."""
        shown = np.repeat(rows, self.lengths)
        of_pages = {name: each[rows] for name, each in self.of_pages.items()}
        of_documents = {name: each[shown] for name, each in self.of_documents.items()}
        return Block(self.before, self.lengths[rows], self.click[shown], of_pages, of_documents)


class Log:
    """A click log: pages in flat arrays.

    Attributes:
        blocks: the pages, some at a time; in memory, or mapped from one file.
        ids: column -> what its numbers stand for: query, document, position, and further columns.
        seen: other counts of the reader, such as clicks off the page.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        ids: Mapping[str, Ids],
        seen: Mapping[str, int] | None = None,
        spill: Spill | None = None,
    ) -> None:
        self.blocks, self.ids, self.seen = blocks, ids, dict(seen or {})
        self._spill = spill  # Its file goes with the log.

    @classmethod
    def of_batches(
        cls, batches: Iterable[pa.RecordBatch], *, memory: int = MEMORY, texts: bool = False
    ) -> Log:
        """Pages -> a log.

        Args:
            batches: columns query, documents, clicks, and others. Lists have a value per document,
                others a value per page. They are consumed one at a time.
            memory: bytes in memory, beyond which pages go to a file.
            texts: whether text may stand for whole numbers, as in a csv file.
        """
        columns: dict[str, Column] = {}
        spill, lengths, clicks, lists = Spill(memory), [], [], set()
        for table in gathered(batches):
            for name in table.column_names:
                values, ours = table[name], "document" if name == "documents" else name
                if pa.types.is_list(values.type):
                    lists.add(ours)
                    values = pa.chunked_array([each.flatten() for each in values.chunks])
                if name == "clicks":
                    clicks.append(spill.keep(values.to_numpy()))
                    continue
                if name == "documents":
                    of_chunks = [each.value_lengths().to_numpy() for each in table[name].chunks]
                    lengths.append(spill.keep(np.concatenate(of_chunks)))
                columns.setdefault(ours, Column(spill, texts and ours in TEXTS)).append(values)
        ids = {name: column.finish() for name, column in columns.items()}
        longest = max((int(each.max(initial=0)) for each in lengths), default=0)
        ids["position"] = Ids(longest, 1, type=pa.int32())
        blocks, before = [], 0
        for place, own in enumerate(zip(lengths, clicks, strict=True)):
            parts = {name: column.parts[place] for name, column in columns.items()}
            inside = {name: parts.pop(name) for name in lists & {*parts}}
            blocks.append(Block(before, *own, parts, inside))
            before += len(own[0])
        return cls(blocks, ids, spill=spill)

    @property
    def pages(self) -> int:
        """Number of pages."""
        return sum(len(each.lengths) for each in self.blocks)

    @property
    def shown(self) -> int:
        """Number of documents on all pages."""
        return sum(len(each.click) for each in self.blocks)

    @property
    def clicks(self) -> int:
        """Number of clicked documents."""
        return sum(int(np.count_nonzero(each.click)) for each in self.blocks)

    @property
    def longest(self) -> int:
        """The most documents of a page."""
        return self.ids["position"].size

    def flat(self, name: str) -> np.ndarray:
        """A column of all pages: lengths, click, or numbers. It has a value per page, or one per
        document if it differs among the documents of a page."""
        parts = [
            getattr(each, name) if name in ("lengths", "click") else each.of_pages[name]
            if name in each.of_pages else each.column(name)
            for each in self.blocks
        ]  # fmt: skip
        return np.concatenate(parts) if parts else np.zeros(0, int)

    def part(self, rows: np.ndarray) -> Log:
        """Some of the pages.

        Args:
            rows: [pages] bool, which ones.
        """
        blocks, before = [], 0
        for each in self.blocks:
            block = each.filter(rows[each.before :][: len(each.lengths)])
            blocks.append(replace(block, before=before))
            before += len(block.lengths)
        return Log(blocks, self.ids, spill=self._spill)

    def count(self, by: Sequence[str] = CELL, **further: Further) -> Counts:
        """Impressions and clicks by some columns.

        Args:
            by: names of columns; also "position", "last_click" (the position of the last click
                above, 0 for none), and those of `further`.
            further: more columns: how many numbers each has, and a function of a block that gives
                [shown] of them.

        Returns:
            a row for each combination of values that occurs, sorted by them.
        """
        further = {"last_click": (self.longest + 1, lambda block: block.last_click), **further}
        known = {name: (ids, partial(Block.column, name=name)) for name, ids in self.ids.items()}
        own = {name: (Ids(size), values) for name, (size, values) in further.items()}
        return self._counted({name: own[name] if name in own else known[name] for name in by})

    def _counted(self, columns: Mapping[str, tuple[Ids, Callable]]) -> Counts:
        ids = {name: each for name, (each, _) in columns.items()}
        fits = _that_fit([each.size for each in ids.values()])
        if fits == len(ids):
            return Counts.together(
                [_sorted(each, columns) for each in _portions(self.blocks)], ids, self.seen
            )
        # There are more combinations than keys, so the columns at the front become one.
        front = {name: columns[name] for name in [*columns][:fits]}
        first = self._counted(front)
        keys = key_of(first.columns, ids)

        def number(block: Block) -> np.ndarray:
            return np.searchsorted(
                keys, _filled(np.empty(len(block.click), np.int64), block, front)
            )

        rest = {name: columns[name] for name in [*columns][fits:]}
        found = self._counted({"": (Ids(len(keys)), number), **rest})
        whole = {name: each[found.columns[""]] for name, each in first.columns.items()}
        whole |= {name: found.columns[name] for name in rest}
        return replace(found, columns=whole, ids=ids)


Further = tuple[int, Callable[[Block], np.ndarray]]


@dataclass(frozen=True, eq=False)
class Counts:
    """Impressions and clicks by some columns: one table, a row per combination of values.

    Attributes:
        columns: column -> [rows] numbers. Rows are distinct, and sorted by the first column, ...
        impressions, clicks: [..., rows] int64. Axes in front are lanes.
        ids: column -> what its numbers stand for.
        seen: other counts of the reader.
    """

    columns: Mapping[str, np.ndarray]
    impressions: np.ndarray
    clicks: np.ndarray
    ids: Mapping[str, Ids]
    seen: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def together(
        cls, parts: Sequence[Part], ids: Mapping[str, Ids], seen: Mapping[str, int] | None = None
    ) -> Counts:
        """Counts of the parts of a log: of each numbers by column, impressions and clicks."""
        if len(parts) == 1:
            return cls(*parts[0], ids, seen or {})
        columns = {name: _joined([each[0][name] for each in parts]) for name in ids}
        shown, clicks = (_joined([each[at] for each in parts]) for at in (1, 2))
        return cls(*_added_up(columns, shown, clicks, ids), ids, seen or {})

    @classmethod
    def of_batches(
        cls,
        batches: Iterable[pa.RecordBatch],
        *,
        texts: bool = False,
        seen: Mapping[str, int] | None = None,
    ) -> Counts:
        """A log that is counted already.

        Args:
            batches: columns of any names, impressions and clicks. Rows may repeat.
            texts: see `Log.of_batches`.
            seen: see `Counts`. Complete after the last batch.
        """
        columns: dict[str, Column] = {}
        counts, spill = {"impressions": [], "clicks": []}, Spill(MEMORY)
        for table in gathered(batches):
            for name in table.column_names:
                if name in counts:
                    counts[name].append(table[name].to_numpy())
                else:
                    column = columns.setdefault(name, Column(spill, texts and name in TEXTS))
                    column.append(table[name])
        ids = {name: column.finish() for name, column in columns.items()}
        rows = zip(*(column.parts for column in columns.values()), strict=True)
        own = [dict(zip(ids, row, strict=True)) for row in rows]
        parts = [
            _added_up(each, *weights, ids)
            for each, *weights in zip(own, *counts.values(), strict=True)
        ]
        return cls.together(parts, ids, seen)

    def __len__(self) -> int:
        return self.impressions.shape[-1]

    def count(self, by: Sequence[str]) -> Counts:
        """Impressions and clicks by fewer columns; see `Log.count`."""
        if list(by) == list(self.columns):
            return self
        ids = {name: self.ids[name] for name in by}
        own = {name: self.columns[name] for name in by}
        return Counts(*_added_up(own, self.impressions, self.clicks, ids), ids, self.seen)

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
        """The combinations of the first columns.

        Args:
            by: their names.

        Returns:
            [rows] the number of the row's combination, from 0; and the first row of each.
        """
        new = np.zeros(len(self), bool)
        new[:1] = True
        for name in by:
            new[1:] |= self.columns[name][1:] != self.columns[name][:-1]
        return np.cumsum(new) - 1, np.flatnonzero(new)

    def table(self) -> pa.Table:
        """The counts with the values of the log."""
        columns = {name: self.values(name) for name in self.columns}
        return pa.table({**columns, "impressions": self.impressions, "clicks": self.clicks})


Part = tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, so many together that about `SIZE` documents are shown; at least one table."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        lists = "documents" in batch.schema.names
        size += len(batch["documents"].values) if lists else len(batch)
        if size >= SIZE:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def key_of(columns: Mapping[str, np.ndarray], ids: Mapping[str, Ids]) -> np.ndarray:
    """[rows] a number per row, by which rows are sorted as by their columns."""
    key, width = np.zeros(len(next(iter(columns.values()))), np.int64), 1
    for name, each in columns.items():
        if width * ids[name].size >= WIDEST:
            distinct, key = np.unique(key, return_inverse=True)
            width = len(distinct)
        key, width = key * ids[name].size + each, width * ids[name].size
    return key


def _that_fit(sizes: Sequence[int]) -> int:
    """How many of the first columns have no more combinations than there are keys."""
    return sum(each < WIDEST for each in accumulate(sizes, mul))


def _portions(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks in a row with at most about `MOST` documents."""
    own: list[Block] = []
    for block in blocks:
        if own and sum(len(each.click) for each in own) + len(block.click) > MOST:
            yield own
            own = []
        own.append(block)
    yield own


def _filled(keys: np.ndarray, block: Block, columns: Mapping[str, tuple[Ids, Callable]]):
    keys[:] = 0
    for ids, values in columns.values():
        keys *= ids.size
        keys += values(block)
    return keys


def _sorted(blocks: Sequence[Block], columns: Mapping[str, tuple[Ids, Callable]]) -> Part:
    """The counts of some blocks, by sorting a key per shown document."""
    ends = np.cumsum([0, *(len(each.click) for each in blocks)])
    keys = np.empty(ends[-1], np.int64)
    own = [
        (each, keys[start:end]) for each, start, end in zip(blocks, ends, ends[1:], strict=False)
    ]

    def fill(part: tuple[Block, np.ndarray]) -> None:
        block, out = part
        _filled(out, block, columns)
        out *= 2
        out += block.click

    list(in_order(fill, own, cells=len(keys)))
    keys.sort()
    click = (keys & 1).astype(bool)
    keys >>= 1
    starts = _starts(keys)
    clicks = np.add.reduceat(click, starts, dtype=np.int64) if len(starts) else starts
    shown, key = np.diff(starts, append=len(keys)), keys[starts]
    del keys, click, starts
    found = {}
    for name, (ids, _) in reversed([*columns.items()][1:]):
        rest = key // ids.size
        key -= rest * ids.size
        found[name], key = key.astype(_small(ids.size)), rest
    for name in [*columns][:1]:
        found[name] = key.astype(_small(columns[name][0].size))
    return {name: found[name] for name in columns}, shown, clicks


def _added_up(columns, shown, clicks, ids) -> Part:
    """Rows in any order -> distinct and sorted ones."""
    key = key_of(columns, ids)
    order = np.argsort(key, kind="stable")
    starts = _starts(key[order])
    first = order[starts]
    shown, clicks = (
        np.add.reduceat(each[..., order], starts, axis=-1) if len(starts) else each
        for each in (shown, clicks)
    )
    return {name: each[first] for name, each in columns.items()}, shown, clicks


def _starts(keys: np.ndarray) -> np.ndarray:
    """Where the runs of equal keys begin."""
    new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return np.flatnonzero(new)


def _small(size: int) -> np.dtype:
    return np.dtype(np.int32 if size <= 2**31 else np.int64)


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts, axis=-1) if parts else np.zeros(0, np.int64)

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
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from math import prod
from operator import mul
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.logs.counted import (
    CELL,
    MEMORY,
    WIDEST,
    Columns,
    Counts,
    block_keys,
    gathered,
    key_of,
    marked,
    run_lengths,
    weighed,
)
from twotowers.logs.frames import PANDAS
from twotowers.logs.numbering import Column, Ids, Spill
from twotowers.logs.sessions import BATCH, EMPTY, EQUAL, read_sessions, seen_in, write_sessions

RANGES = 1 << 16
"""Where not all keys are sorted at once, portions of them consist of so many ranges."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some pages of a log.

    Attributes:
        before: rows of the log before these.
        lengths: [pages] documents of each page.
        click: [shown] bool: was it clicked, of the documents of all pages one after the other.
        of_pages, of_documents: column -> [pages] or [shown] numbers (`Log.ids`).
        times: [pages] how often the log has each page; None if once.
    """

    before: int
    lengths: np.ndarray
    click: np.ndarray
    of_pages: Mapping[str, np.ndarray]
    of_documents: Mapping[str, np.ndarray]
    times: np.ndarray | None = None

    @cached_property
    def page(self) -> np.ndarray:
        """[shown] the page of each document, from 0."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def position(self) -> np.ndarray:
        """[shown] the position of each document, from 0."""
        stated = self.of_documents.get("position")
        return in_page(self.lengths) if stated is None else stated

    @property
    def last_click(self) -> np.ndarray:
        """[shown] the position from 1 of the last click above, 0 for none."""
        first = self.page * (int(self.position.max(initial=0)) + 2)
        highest = np.maximum.accumulate(first + np.where(self.click, self.position + 1, 0))
        return np.maximum(np.append(0, highest)[: len(highest)] - first, 0)

    def column(self, name: str) -> np.ndarray:
        """[shown] numbers of a column, or of what follows from the pages."""
        if name in self.of_pages:
            return np.repeat(self.of_pages[name], self.lengths)
        return self.of_documents[name] if name in self.of_documents else getattr(self, name)

    def batch(self, ids: Mapping[str, Ids]) -> pa.RecordBatch:
        """The pages with the values of the log: lists of documents, of clicks and so on."""
        offsets = pa.array(np.append(0, np.cumsum(self.lengths)), pa.int32())
        columns = {name: ids[name].take(each) for name, each in self.of_pages.items()}
        inside = {name: ids[name].take(each) for name, each in self.of_documents.items()}
        inside = {"documents": inside.pop("document"), "clicks": pa.array(self.click), **inside}
        columns |= {name: pa.ListArray.from_arrays(offsets, each) for name, each in inside.items()}
        columns |= {} if self.times is None else {EQUAL: pa.array(self.times)}
        return pa.RecordBatch.from_pydict(columns)

    def filter(self, rows: np.ndarray) -> Block:
        """Some of the pages: [pages] bool, or how often each."""
        times = self.times if self.times is None or rows.dtype == bool else rows
        rows = rows > 0
        shown = np.repeat(rows, self.lengths)
        of_pages = {name: each[rows] for name, each in self.of_pages.items()}
        of_documents = {name: each[shown] for name, each in self.of_documents.items()}
        inside = self.click[shown], of_pages, of_documents
        return Block(
            self.before, self.lengths[rows], *inside, None if times is None else times[rows]
        )

    def number(self, rows: np.ndarray) -> int:
        """How many pages some rows are: [pages] bool."""
        return int(np.count_nonzero(rows) if self.times is None else self.times[rows].sum())

    def total(self, shown: np.ndarray) -> int:
        """How many impressions some documents are: [shown] bool."""
        if self.times is None:
            return int(np.count_nonzero(shown))
        return int(np.repeat(self.times, self.lengths)[shown].sum())


class Log:
    """A click log: pages in flat arrays, each a row, or so many equal ones.

    Attributes:
        blocks: the pages, some at a time; in memory, or mapped from one file.
        ids: column -> what its numbers stand for: query, document, position, and further columns.
        seen: other counts of the reader, such as clicks off the page.
        kind: the library of the frames that answers come in.
        memory: bytes to use.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        ids: Mapping[str, Ids],
        seen: Mapping[str, int] | None = None,
        spill: Spill | None = None,
        kind: str = PANDAS,
        memory: int = MEMORY,
    ) -> None:
        self.blocks, self.ids, self.seen, self.kind = blocks, ids, dict(seen or {}), kind
        self.memory = memory
        self._spill = spill  # Its file goes with the log.

    @classmethod
    def of_batches(
        cls, batches: Iterable[pa.RecordBatch], *, memory: int = MEMORY, texts: bool = False
    ) -> Log:
        """Pages -> a log.

        Args:
            batches: columns query, documents, clicks, and others. Lists have a value per document,
                others a value per page. They are consumed one at a time. A list of positions, from
                1 and rising, tells of gaps; `EQUAL` how many equal pages a row is.
            memory: bytes to use. Pages beyond half of it go to a file.
            texts: whether text may stand for whole numbers, as in a csv file.
        """
        columns: dict[str, Column] = {}
        spill, lengths, clicks, lists = Spill(memory // 2), [], [], set()
        places: list[np.ndarray | None] = []
        times: list[np.ndarray] = []
        for table in gathered(batches, EMPTY):
            for name in table.column_names:
                values, ours = table[name], "document" if name == "documents" else name
                if pa.types.is_list(values.type):
                    lists.add(ours)
                    values = pa.chunked_array([each.flatten() for each in values.chunks])
                if name == "clicks":
                    clicks.append(spill.keep(values.to_numpy()))
                    continue
                if name == EQUAL:
                    times.append(values.to_numpy())
                    continue
                if name == "documents":
                    of_chunks = [each.value_lengths().to_numpy() for each in table[name].chunks]
                    lengths.append(spill.keep(np.concatenate(of_chunks)))
                    places.append(None)
                if name == "position":  # It is the last column.
                    place = values.to_numpy().astype(np.int32) - 1
                    if not np.array_equal(place, in_page(lengths[-1])):
                        places[-1] = spill.keep(place)
                    continue
                columns.setdefault(ours, Column(spill, texts and ours != "split")).append(values)
        ids = {name: column.finish() for name, column in columns.items()}
        gaps = any(place is not None for place in places)
        if gaps:
            places = [
                in_page(n) if at is None else at for n, at in zip(lengths, places, strict=True)
            ]
        ends = [each + 1 for each in places] if gaps else lengths
        longest = max((int(each.max(initial=0)) for each in ends), default=0)
        ids["position"] = Ids(longest, 1, type=pa.int32())
        blocks, before = [], 0
        for place, own in enumerate(zip(lengths, clicks, strict=True)):
            parts = {name: column.parts[place] for name, column in columns.items()}
            inside = {name: parts.pop(name) for name in lists & {*parts}}
            inside |= {"position": places[place]} if gaps else {}
            blocks.append(Block(before, *own, parts, inside, times[place] if times else None))
            before += len(own[0])
        return cls(blocks, ids, spill=spill, memory=memory)

    @classmethod
    def read(cls, path: str | Path) -> Log:
        """The pages of a sessions file (`twotowers.logs.sessions`)."""
        # Two threads hand batches over, and would wait for each other at every small one.
        log = cls.of_batches(read_sessions(path, batch=5 * BATCH))
        log.seen = seen_in(path)
        return log

    @property
    def pages(self) -> int:
        """Number of pages."""
        return sum(
            len(each.lengths) if each.times is None else int(each.times.sum())
            for each in self.blocks
        )

    @property
    def times(self) -> np.ndarray | None:
        """[rows] how many equal pages each row is; None if each is one."""
        parts = [each.times for each in self.blocks if each.times is not None]
        return np.concatenate(parts) if parts else None

    @property
    def shown(self) -> int:
        """Number of documents on all pages."""
        return sum(each.total(np.ones(len(each.click), bool)) for each in self.blocks)

    @property
    def clicks(self) -> int:
        """Number of clicked documents."""
        return sum(each.total(each.click) for each in self.blocks)

    @property
    def gaps(self) -> bool:
        """Whether positions are missing on a page, below the first or between others."""
        return any("position" in each.of_documents for each in self.blocks)

    def closed(self) -> Log:
        """The log with the documents of each page at the positions 1, 2 and so on."""
        if not self.gaps:
            return self
        blocks = [
            replace(
                each, of_documents={k: v for k, v in each.of_documents.items() if k != "position"}
            )
            for each in self.blocks
        ]
        longest = max(int(each.lengths.max(initial=0)) for each in blocks)
        ids = {**self.ids, "position": Ids(longest, 1, type=pa.int32())}
        return Log(blocks, ids, self.seen, self._spill, self.kind, self.memory)

    @property
    def page_columns(self) -> list[str]:
        """The columns with a value per page."""
        return [*self.blocks[0].of_pages] if self.blocks else []

    @property
    def longest(self) -> int:
        """The most documents of a page."""
        return self.ids["position"].size

    def flat(self, name: str) -> np.ndarray:
        """A column of all rows: lengths, click, or numbers. It has a value per page, or one per
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
            rows: [rows] bool, which ones; or how often each is meant.
        """
        blocks, before = [], 0
        for each in self.blocks:
            block = each.filter(rows[each.before :][: len(each.lengths)])
            blocks.append(replace(block, before=before))
            before += len(block.lengths)
        part = Log(blocks, self.ids, None, self._spill, self.kind, self.memory)
        part.seen = {"pages": part.pages, "clicks": part.clicks}
        return part

    def count(self, by: Sequence[str] = CELL, **further: Further) -> Counts:
        """Impressions and clicks by some columns.

        Args:
            by: names of columns; also "position", of a log of pages "last_click" (the position of
                the last click above, 0 for none), and those of `further`.
            further: more columns: how many numbers each has, and a function of a block that gives
                [shown] of them.

        Returns:
            a row for each combination of values that occurs, sorted by them: `frame()` gives it,
            `write` writes it.

        Raises:
            InputError: a row of a log of `read_log` is wrong, or a column is missing.

        Example:
            >>> import twotowers as tt
            >>> pages = {"documents": [["a", "b"], ["a"]], "clicks": [[1, 0], [1]]}
            >>> tt.read_log(pa.table(pages)).count().frame()["impressions"].to_pylist()
            [2, 1]
        """
        return Counts.joined([*self.portions(by, **further)])

    def portions(self, by: Sequence[str] = CELL, **further: Further) -> Iterator[Counts]:
        """What `count` gives, some rows at a time, so that not all need be in memory."""
        columns = self._columns(by, further)
        ids = {name: each for name, (each, _) in columns.items()}
        if any(each.times is not None for each in self.blocks):  # Rows are few, pages many.
            yield Counts(*weighed(self.blocks, columns), ids, self.seen, self.kind)
            return
        fits = sum(each < WIDEST for each in accumulate((each.size for each in ids.values()), mul))
        if fits == len(ids):
            for portion in self._ranges(columns):
                part = run_lengths(marked(self.blocks, columns, *portion), columns)
                yield Counts(*part, ids, self.seen, self.kind)
            return
        # There are more combinations than keys, so the columns at the front become one.
        front = {name: columns[name] for name in by[:fits]}
        first = self.count(by[:fits], **further)
        keys = key_of(first.columns, ids)
        number = len(keys), lambda block: np.searchsorted(keys, block_keys(block, front))
        for part in self.portions(["", *by[fits:]], **{**further, "": number}):
            whole = {name: each[part.columns[""]] for name, each in first.columns.items()}
            whole |= {name: part.columns[name] for name in by[fits:]}
            yield replace(part, columns=whole, ids=ids)

    def _columns(self, by: Sequence[str], further: Mapping[str, Further]) -> Columns:
        further = {"last_click": (self.longest + 1, lambda block: block.last_click), **further}
        own = {name: (Ids(size), values) for name, (size, values) in further.items()}
        known = {name: (ids, partial(Block.column, name=name)) for name, ids in self.ids.items()}
        return {name: own[name] if name in own else known[name] for name in by}

    def _ranges(self, columns: Columns) -> list[tuple[int, int, int]]:
        """Ranges of keys that fit into memory: the first key, the end, and the number of rows."""
        width, most = prod(ids.size for ids, _ in columns.values()), self.memory // 16
        if self.shown <= most:
            return [(0, width, self.shown)]
        step = -(-width // RANGES)
        bins = sum(
            np.bincount(block_keys(each, columns) // step, minlength=RANGES) for each in self.blocks
        )
        starts = np.flatnonzero(np.diff(np.cumsum(bins) // most, prepend=-1))
        ends = [*(starts[1:] * step).tolist(), width]
        return [*zip((starts * step).tolist(), ends, np.add.reduceat(bins, starts), strict=True)]

    def write(self, path: str | Path) -> int:
        """Write the pages as a sessions file (docs/logs.md), all or nothing; its rows."""
        return write_sessions(path, self.batches(), self.seen)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The pages with the values of the log, some thousands at a time."""
        for block in self.blocks:
            yield block.batch(self.ids)


def in_page(lengths: np.ndarray) -> np.ndarray:
    """[shown] the place of each document on its page, from 0."""
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths)


Further = tuple[int, Callable[[Block], np.ndarray]]

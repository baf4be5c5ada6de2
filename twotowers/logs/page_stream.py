"""Pages of a log that memory need not hold: divided, shuffled by blocks, read ahead on a thread.

The log is read once: what exceeds memory is in a file that is mapped (`twotowers.logs.log`). A pass
takes runs of SLICE pages in random order, TOGETHER of them at a time, and shuffles their pages. So
pages that are far apart in the log may be in one batch, and reading stays sequential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.errors import InputError
from twotowers.files.blocks import ahead
from twotowers.logs.counted import key_of
from twotowers.logs.log import Block, Log
from twotowers.randomness import stream
from twotowers.splits import SPLITS

SLICE, TOGETHER = 4_096, 64
HELD_OUT = 100_000
"""The most pages to stop early by, and to report."""

Rows = dict[str, np.ndarray]
"""Pages: `clicks` and `where`, [pages, K] bool; `page`, [pages] their numbers in the log; and by
the names of lookups [pages, K] the rows of what towers read, 0 where there is no document."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The rows of a table by columns of a log, such as query and document.

    Of the combinations `ids` that the log has, `keys` are rising numbers, and `row` the row of
    each; None if it is its place.
    """

    ids: pd.DataFrame
    keys: np.ndarray
    row: np.ndarray | None = None

    @classmethod
    def of(cls, log: Log, by: list[str]) -> Lookup:
        """The combinations of some columns."""
        counts = log.count(by)
        ids = pd.DataFrame({name: counts.values(name).to_pandas() for name in by})
        return cls(ids, key_of(counts.columns, {name: log.ids[name] for name in by}))

    def rows(self, log: Log, block: Block) -> np.ndarray:
        """[shown] the row of each document of some pages."""
        columns = {name: block.column(name) for name in self.ids}
        place = np.searchsorted(
            self.keys, key_of(columns, {name: log.ids[name] for name in columns})
        )
        return place if self.row is None else self.row[place]


class PageStream:
    """The pages of a log, divided at random; `units` of them are to train on.

    `lookups` has by name the rows of what towers read; of held-out parts at most HELD_OUT pages are
    kept.
    """

    def __init__(
        self, log: Log, positions: int, lookups: Mapping[str, Lookup], shares: Mapping[str, float]
    ) -> None:
        self.log, self.positions, self.lookups = log, positions, lookups
        held_out = np.minimum([shares[name] for name in SPLITS[1:]], HELD_OUT / log.pages)
        drawn = stream("parts of a log", 0).random(log.pages, dtype=np.float32)
        self._part = np.searchsorted(np.cumsum(held_out), drawn, side="right").astype(np.uint8)
        sizes = np.bincount(self._part, minlength=len(SPLITS))
        if not sizes.all():
            raise InputError(f"its {log.pages} pages leave none for a part", field="log")
        self.units = int(sizes[-1])
        self._runs = [
            (block, start) for block in log.blocks for start in range(0, len(block.lengths), SLICE)
        ]

    def pages(self, part: str) -> Rows:
        """All pages of a part, in the order of the log."""
        return _joined([self._rows(*each, part) for each in self._runs])

    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """[K] impressions and clicks of pages to train on: all, or TOGETHER runs and a few."""
        some = self._runs[:: len(self._runs) // TOGETHER or 1]
        rows = _joined([self._rows(*each, SPLITS[0]) for each in some])
        return rows["where"].sum(0), rows["clicks"].sum(0)

    def pieces(self, seed: int, sizes: Iterator[int], skipped: int = 0) -> Iterator[Rows]:
        """Pages to train on, pass after pass, shuffled, without `skipped` ones at the start."""
        return ahead(self._cut(seed, sizes, skipped))

    def _cut(self, seed: int, sizes: Iterator[int], skipped: int) -> Iterator[Rows]:
        passed, skipped = divmod(skipped, self.units)
        shuffled = self._shuffled(seed, passed)
        waiting = next(shuffled)
        for size in sizes:
            while len(waiting["page"]) < skipped + size:
                gone = min(skipped, len(waiting["page"]))
                left = _taken(waiting, slice(gone, None))
                waiting, skipped = _joined([left, next(shuffled)]), skipped - gone
            yield _taken(waiting, slice(skipped, skipped + size))
            waiting, skipped = _taken(waiting, slice(skipped + size, None)), 0

    def _shuffled(self, seed: int, passed: int) -> Iterator[Rows]:
        while True:
            rng = stream("order of pages", seed, passed)
            order = rng.permutation(len(self._runs))
            for first in range(0, len(order), TOGETHER):
                some = [self._runs[number] for number in order[first : first + TOGETHER]]
                rows = _joined([self._rows(*each, SPLITS[0]) for each in some])
                yield _taken(rows, rng.permutation(len(rows["page"])))
            passed += 1

    def _rows(self, block: Block, start: int, part: str) -> Rows:
        """The pages of a run that are in a part."""
        run = slice(start, start + SLICE)
        first = int(block.lengths[:start].sum())
        shown = slice(first, first + int(block.lengths[run].sum()))
        number = (SPLITS.index(part) - 1) % len(SPLITS)  # What is held out comes first.
        own = self._part[block.before + start :][: len(block.lengths[run])] == number
        pages = Block(
            block.before + start,
            np.asarray(block.lengths[run]),
            np.asarray(block.click[shown]),
            {name: np.asarray(each[run]) for name, each in block.of_pages.items()},
            {name: np.asarray(each[shown]) for name, each in block.of_documents.items()},
        ).filter(own)
        at, shape = (pages.page, pages.position), (len(pages.lengths), self.positions)
        rows = {"where": np.zeros(shape, bool), "clicks": np.zeros(shape, bool)}
        rows["where"][at], rows["clicks"][at] = True, pages.click
        for name, lookup in self.lookups.items():
            rows[name] = np.zeros(shape, np.int32)
            rows[name][at] = lookup.rows(self.log, pages)
        return {**rows, "page": np.flatnonzero(own) + pages.before}


def _taken(rows: Rows, index: np.ndarray | slice) -> Rows:
    return {name: each[index] for name, each in rows.items()}


def _joined(parts: list[Rows]) -> Rows:
    return {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}

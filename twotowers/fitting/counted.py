"""What a click model needs of a file of pages, counted from the file.

A model without hidden events needs totals of its probabilities, a model of cells or of jumps their
counts (`Totals` and `Statistics` of `twotowers.fitting.statistics`). Both are counted in a pass
that keeps no page (`twotowers.logs.page_groups`). Other models need the distinct pages, and read
them into memory.

    >>> import pyarrow as pa
    >>> from twotowers.fitting.em import fit_counts
    >>> from twotowers.logs.sessions import write_sessions
    >>> from twotowers.models.cascade import Cascade
    >>> page = {"split": ["log"] * 3, "query": [7] * 3, "documents": [[3, 1], [3, 1], [1, 3]],
    ...         "clicks": [[1, 0], [0, 1], [0, 0]]}
    >>> write_sessions("sessions.parquet", [pa.table(page)])
    3
    >>> totals, pairs = PageLog("sessions.parquet", positions=2).statistics(Cascade())
    >>> pairs["document"].to_pylist(), fit_counts(totals).parameters["attraction"].round(3).tolist()
    ([1, 3], [0.5, 0.333])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.fitting.statistics import Statistics, Totals, distinct_pages
from twotowers.logs.page_arrays import Pages, read_page_arrays
from twotowers.logs.page_groups import count_by_pair, count_by_position
from twotowers.logs.sessions import schema_of
from twotowers.logs.warehouse import MEMORY
from twotowers.models.page import last_clicks
from twotowers.models.protocol import JUMPS, ONCE, PAGES, ClickModel, of_documents


@dataclass(frozen=True)
class PageLog:
    """A file of pages, which is read when a model asks for its statistics.

    Attributes:
        path: a sessions file (`twotowers.logs.sessions`).
        positions: positions on a page.
        rows: [pages] bool, which of its pages are meant; None for all.
        memory, threads: of DuckDB, see `twotowers.logs.warehouse.count_sessions`.
    """

    path: str | Path
    positions: int
    rows: np.ndarray | None = None
    memory: str = MEMORY
    threads: int | None = None

    def statistics(self, model: ClickModel) -> tuple[Statistics | Totals, pa.Table]:
        """What the model needs, and the ids of its pairs.

        Args:
            model: a click model. If it has `counts`, none of its parts may be per jump.

        Returns:
            `Totals` if the model has `counts`, else `Statistics`; and the columns query and
            document of the pairs, by their number. A model without a part per document has none.
        """
        if model.counts is not None:
            return self._totals(model)
        if model.statistics != PAGES:
            return self._cells(model)
        return Statistics.of_pages(model, self.distinct), self.distinct.ids

    @cached_property
    def distinct(self) -> Pages:
        """The distinct pages."""
        log = read_page_arrays(self.path, positions=self.positions, rows=self.rows)
        pages = distinct_pages(log.pair, log.clicks, log.where, pairs=log.pairs)
        return replace(pages, ids=log.ids)

    def _totals(self, model: ClickModel) -> tuple[Totals, pa.Table]:
        kinds, found = model.parts, {}
        by_document = of_documents(kinds)
        others = [part for part in kinds if part not in by_document]
        schema = schema_of(self.path)
        types = {"query": schema.field("query").type}
        types["document"] = schema.field("documents").type.value_type
        pairs = pa.schema(types).empty_table()
        if by_document:
            sign = _credits(model, by_document)
            pairs, *groups = count_by_pair(self.path, sign, **self._counting, **self._database)
            pair, signs, number = groups
            for part, columns in zip(by_document, _bits(signs, by_document), strict=True):
                found[part] = [np.bincount(pair, number * bit, len(pairs)) for bit in columns]
        if others:
            signs = 4 ** len(others)
            sign = _credits(model, others)
            number = count_by_position(self.path, sign, signs=signs, **self._counting)
            for part, columns in zip(others, _bits(np.arange(signs), others), strict=True):
                by_position = [(number * bit).sum(1).astype(float) for bit in columns]
                once = kinds[part] == ONCE
                found[part] = [each.sum(keepdims=True) if once else each for each in by_position]
        by_kind = ({part: found[part][place] for part in kinds} for place in range(3))
        return Totals(model, *by_kind), pairs

    def _cells(self, model: ClickModel) -> tuple[Statistics, pa.Table]:
        """Counts of cells, or of cells and the last click above."""
        length, jumps = self.positions, model.statistics == JUMPS
        place = np.arange(length)
        kind = np.min_scalar_type(2 * length**2)

        def sign(clicks: np.ndarray, where: np.ndarray) -> np.ndarray:
            last = last_clicks(clicks) if jumps else 0
            return ((place * length + last) * 2 + clicks).astype(kind)

        pairs, *groups = count_by_pair(self.path, sign, **self._counting, **self._database)
        pair, signs, number = groups
        jump, clicked = np.divmod(signs.astype(np.int64), 2)
        position, last = np.divmod(jump, length)
        statistics = Statistics.of_rows(
            model,
            pair,
            position,
            last,
            clicked.astype(bool),
            number.astype(float),
            pairs=len(pairs),
            positions=length,
        )
        return statistics, pairs

    @property
    def _counting(self) -> dict:
        return {"positions": self.positions, "rows": self.rows}

    @property
    def _database(self) -> dict:
        return {"memory": self.memory, "threads": self.threads}


def _credits(model: ClickModel, parts: list[str]):
    """The sign of a position: a bit for success and a bit for trial, of each part in turn."""

    def sign(clicks: np.ndarray, where: np.ndarray) -> np.ndarray:
        credits = model.counts(clicks, where)
        bits = (each for part in parts for each in credits[part])
        return sum(bit.astype(np.uint8) << place for place, bit in enumerate(bits))

    return sign


def _bits(signs: np.ndarray, parts: list[str]) -> Iterator[tuple[np.ndarray, ...]]:
    """For each part: whether a sign has a success, a trial, and an impression."""
    for place in range(len(parts)):
        success, trial = (signs >> (2 * place + bit) & 1 for bit in (0, 1))
        yield success, trial, np.ones_like(signs)

"""Sufficient statistics of a log for a click model of pages.

A model names its own in `ClickModel.statistics`: counts of cells (pair, position); counts of cells
and the last click above; or distinct pages with their clicks, counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.distinct import number_rows
from twotowers.logs.counted import Counts
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import Pages, distinct_arrays
from twotowers.models.page import last_clicks
from twotowers.models.protocol import (
    JUMPS,
    ONCE,
    PAGES,
    PER_DOCUMENT,
    PER_JUMP,
    PER_POSITION,
    ClickModel,
    of_documents,
)

KEYS = ("query", "document")
"""The columns that name a query-document pair."""


def distinct_pages(
    pair: np.ndarray, clicks: np.ndarray, where: np.ndarray, *, pairs: int | None = None
) -> Pages:
    """Count equal pages. The result has them in the order of their first occurrence.

    [pages, K] pairs are integers from 0, and `where` is False past the end of a page.
    """
    pairs = int(pair.max(initial=-1, where=where)) + 1 if pairs is None else pairs
    kind = np.int32 if pairs < 2**30 else np.int64
    code, first = number_rows(np.where(where, (pair.astype(kind) + 1) * 2 + clicks, 0))
    number = np.bincount(code, minlength=len(first)).astype(float)
    shown = where[first]
    return Pages(np.where(shown, pair[first], 0), clicks[first] & shown, shown, pairs, number)


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics of a log for a model: rows of clicks, and the parameters behind each.

    Attributes:
        model: the click model.
        index: part -> [rows, K] index of the probability that applies there.
        sizes: part -> number of its probabilities.
        clicks: [rows, K] bool.
        where: [rows, K] bool, False past the end of a page.
        number: [rows] how often the log has the row.
    """

    model: ClickModel
    index: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]
    clicks: np.ndarray
    where: np.ndarray
    number: np.ndarray

    @classmethod
    def of_log(
        cls, model: ClickModel, log: Log | Counts, positions: int
    ) -> tuple[Statistics, pa.Table]:
        """What a model needs of a log, and the ids of its query-document pairs.

        Counts by query, document and position do for models of cells. A model of cells with
        `counts` has one part, so that counts by pair, or by position, are all that it needs.
        """
        if model.statistics == PAGES:
            pages = distinct_arrays(log, positions=positions)
            return cls.of_pages(model, pages), pages.ids
        columns = ["query", "document", "position"]
        if model.statistics == JUMPS:
            columns.append("last_click")
        elif model.counts is not None:
            columns = columns[:2] if of_documents(model.parts) else columns[2:]
        counts = log.count(columns)
        zero = np.broadcast_to(0, len(counts))
        none = pa.schema([(name, log.ids[name].type) for name in KEYS]).empty_table()
        pair, pairs = pairs_of(counts) if "query" in columns else (zero, none)
        position = position_of(counts) if "position" in columns else zero
        last = counts.columns.get("last_click", zero)
        number = np.stack([counts.impressions - counts.clicks, counts.clicks], axis=1).ravel()
        del counts  # Memory is for one copy of a log.
        row = np.flatnonzero(number)
        number, clicked = number[row].astype(float), (row & 1).astype(bool)
        row >>= 1
        places = (each[row].astype(np.int64) for each in (pair, position, last))
        rows = cls.of_rows(model, *places, clicked, number, pairs=len(pairs), positions=positions)
        return rows, pairs

    @classmethod
    def of_pages(cls, model: ClickModel, pages: Pages) -> Statistics:
        """From distinct pages, reduced to the model's sufficient statistics."""
        length = pages.pair.shape[1]
        position = np.broadcast_to(np.arange(length), pages.pair.shape)
        if model.statistics == PAGES:
            columns = pages.pair, position, position * 0, pages.clicks, pages.number, pages.where
            return cls.of_rows(model, *columns, pairs=pages.pairs, positions=length)
        last = last_clicks(pages.clicks) if model.statistics == JUMPS else position * 0
        shown = pages.where
        number = np.broadcast_to(pages.number[:, None], shown.shape)[shown]
        columns = pages.pair[shown], position[shown], last[shown], pages.clicks[shown]
        return cls._counted(model, *columns, number, pages.pairs, length)

    @classmethod
    def of_cells(
        cls,
        model: ClickModel,
        pair: np.ndarray,
        position: np.ndarray,
        impressions: np.ndarray,
        clicks: np.ndarray,
        *,
        pairs: int,
        positions: int,
    ) -> Statistics:
        """From counts [cells], positions from 0, for a model whose statistics they are."""
        twice = [np.concatenate([column, column]) for column in (pair, position)]
        clicked = np.repeat([True, False], len(pair))
        number = np.concatenate([clicks, impressions - clicks]).astype(float)
        kept = number > 0
        columns = (*(column[kept] for column in twice), np.zeros(kept.sum(), int), clicked[kept])
        return cls._counted(model, *columns, number[kept], pairs, positions)

    @classmethod
    def _counted(cls, model, pair, position, last, clicked, number, pairs, length) -> Statistics:
        """Add up equal rows, of one position each."""
        key = ((pair.astype(np.int64) * length + position) * length + last) * 2 + clicked
        distinct, row = np.unique(key, return_inverse=True)
        number = np.bincount(row, number, len(distinct))
        key, clicked = np.divmod(distinct, 2)
        key, last = np.divmod(key, length)
        pair, position = np.divmod(key, length)
        columns = pair, position, last, clicked.astype(bool), number
        return cls.of_rows(model, *columns, pairs=pairs, positions=length)

    @classmethod
    def of_rows(
        cls,
        model: ClickModel,
        pair: np.ndarray,
        position: np.ndarray,
        last: np.ndarray,
        clicked: np.ndarray,
        number: np.ndarray,
        where: np.ndarray | None = None,
        *,
        pairs: int,
        positions: int,
    ) -> Statistics:
        """From distinct rows: pages [rows, K], or one position each [rows], of cells or of jumps.

        Positions are from 0; `last` is the position from 1 of the last click above, 0 for none, and
        in all rows of cells; `number` [rows] is how often the row was seen; `where` is False past
        the end of a page.
        """
        columns = pair, position, last, clicked
        if where is None:
            where, columns = np.ones((len(pair), 1), bool), (each[:, None] for each in columns)
        pair, position, last, clicked = columns
        # A position's rows lie side by side in memory, as models go through pages by position.
        pair, clicked, where = map(np.asfortranarray, (pair, clicked, where))
        by = {
            PER_DOCUMENT: (lambda: pair, pairs),
            PER_POSITION: (lambda: position, positions),
            PER_JUMP: (lambda: position * positions + last, positions**2),
            ONCE: (lambda: np.broadcast_to(0, pair.shape), 1),
        }
        if unknown := set(model.parts.values()) - set(by):
            raise InputError(
                f"{type(model).__name__} has parts per {', '.join(unknown)}",
                field="parts",
                expected=f"one per {', '.join(by)}",
            )
        index = {part: by[kind][0]() for part, kind in model.parts.items()}
        sizes = {part: by[kind][1] for part, kind in model.parts.items()}
        return cls(model, index, sizes, clicked, where, number)


def pairs_of(counts: Counts) -> tuple[np.ndarray, pa.Table]:
    """[rows] the query-document pair of counts that are sorted by it, and the ids of all pairs."""
    pair, first = counts.groups(KEYS)
    pair = pair.astype(np.int32) if len(first) < 2**31 else pair
    ids = {name: counts.ids[name].take(counts.columns[name][first]) for name in KEYS}
    return pair, pa.table(ids)


def position_of(counts: Counts) -> np.ndarray:
    """[rows] positions from 0."""
    ids, numbers = counts.ids["position"], counts.columns["position"]
    return numbers if ids.values is None and ids.low == 1 else ids.whole(numbers) - 1

"""Pairs that EM cannot tell apart, each kind of them fitted once.

Two query-document pairs are alike if they were shown and clicked equally often at the same
positions (and after the same last clicks, if the model asks for these). If they start alike, each
EM step gives both the same estimates. So one pair of each kind is enough: in an M-step it counts
once for its own probability, and once for each pair of its kind for the probabilities that all
pairs share. This changes no estimate. Most pairs of a web log have one impression, of which there
are few kinds.

A page holds several pairs at once. So if a model needs whole pages, pairs are alike if they have
the same place on distinct pages that are clicked alike and equally often, and that share no pair
with others. This is the long tail of queries that were asked once, or always answered and clicked
in one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from twotowers.files.distinct import first_of, number_rows
from twotowers.fitting.statistics import Statistics
from twotowers.models.protocol import PAGES, of_documents

WORTH = 0.5
"""Kinds are used if they leave this share of the rows or less, since what is left is a copy."""


@dataclass(frozen=True)
class DuplicateGroups:
    """Statistics of one pair a kind: `kind` [pairs] of each, and `repeats` [kinds] of them."""

    statistics: Statistics
    kind: np.ndarray
    repeats: np.ndarray

    @classmethod
    def of(cls, statistics: Statistics) -> DuplicateGroups | None:
        """The kinds of a log's pairs, whose rows must be in the same order, as they are in counts.

        None if the model has no part per document, or if more than the share WORTH of the rows
        would be left, or of the pairs if the rows are pages.
        """
        index, own = statistics.index, of_documents(statistics.model.parts)
        if not own:
            return None
        if statistics.model.statistics == PAGES:
            return cls._of_pages(statistics, own)
        pairs = statistics.sizes[own[0]]
        order = np.argsort(index[own[0]][:, 0], kind="stable")
        pair = index[own[0]][order, 0]
        kind = _kinds(pair, _codes(statistics, own)[order], pairs)

        chosen = np.zeros(pairs, bool)
        chosen[first_of(kind)] = True
        kept = np.sort(order[chosen[pair]])
        if len(kept) > WORTH * len(order):
            return None
        return cls._of(statistics, own, kept, kind)

    @classmethod
    def _of_pages(cls, statistics: Statistics, own: list[str]) -> DuplicateGroups | None:
        pair, where = statistics.index[own[0]], statistics.where
        size = statistics.sizes[own[0]]
        columns, times = list(zip(pair.T, where.T, strict=True)), np.zeros(size, np.int32)
        for column, shown in columns:
            np.add.at(times, column[shown], np.int32(1))
        once = times == 1
        alone = np.all([once[column] | ~shown for column, shown in columns], axis=0)
        rows = np.flatnonzero(alone)
        clicked = statistics.clicks[rows] + 2 * where[rows]
        numbers = pd.factorize(statistics.number[rows])[0]
        code, first = number_rows(np.column_stack([clicked, numbers]))
        alike, shown = np.arange(size, dtype=pair.dtype), where[rows]
        alike[pair[rows][shown]] = pair[rows[first]][code][shown]
        kind = (np.cumsum(alike == np.arange(size), dtype=pair.dtype) - 1)[alike]
        if kind.max(initial=-1) + 1 > WORTH * size:
            return None
        alone[rows[first]] = False
        return cls._of(statistics, own, np.flatnonzero(~alone), kind)

    @classmethod
    def _of(cls, statistics: Statistics, own: list[str], kept: np.ndarray, kind: np.ndarray):
        """The statistics of some rows, with the numbers of the kinds."""

        def some(column: np.ndarray) -> np.ndarray:
            if not column.strides[0]:  # what all rows share
                return np.broadcast_to(column[:1], (len(kept), *column.shape[1:]))
            return np.asfortranarray(column[kept])

        reduced = {
            part: np.asfortranarray(kind.astype(column.dtype, copy=False)[some(column)])
            if part in own
            else some(column)
            for part, column in statistics.index.items()
        }
        repeats = np.bincount(kind)
        sizes = {
            part: len(repeats) if part in own else size for part, size in statistics.sizes.items()
        }
        rows = {name: some(getattr(statistics, name)) for name in ("clicks", "where", "number")}
        return cls(replace(statistics, index=reduced, sizes=sizes, **rows), kind, repeats)

    def spread(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Part -> [size] values, where each pair has those of its kind."""
        own = of_documents(self.statistics.model.parts)
        return {part: each[self.kind] if part in own else each for part, each in values.items()}


def _codes(statistics: Statistics, own: list[str]) -> np.ndarray:
    """[rows] numbers that are equal where all columns but the pair are."""
    code = pd.factorize(statistics.number)[0] * 2 + statistics.clicks[:, 0]
    for part, column in statistics.index.items():
        if part not in own:
            # Numbered anew each time, so that products fit in int64.
            code = pd.factorize(code * statistics.sizes[part] + column[:, 0])[0]
    return code


def _kinds(pair: np.ndarray, code: np.ndarray, pairs: int) -> np.ndarray:
    """[pairs] kinds, numbered in the order of their first pair, of rows sorted by pair.

    In each round all pairs get a number for their rows so far: for that of the round before and the
    next row's code. Both are below the number of rows, so their product fits in int64. Pairs
    without rows are alike.
    """
    length = np.bincount(pair, minlength=pairs)
    first, codes = np.cumsum(length) - length, code.max(initial=0) + 1
    kind = np.zeros(pairs, np.int64)
    going, number, used = np.flatnonzero(length), np.zeros((length > 0).sum(), np.int64), 1
    for place in range(length.max(initial=0)):
        stays = length[going] > place
        going, number = going[stays], number[stays]
        number = pd.factorize(number * codes + code[first[going] + place])[0]
        # Kinds of longer pairs get numbers of their own in the next round.
        kind[going] = number + used
        used += number.max() + 1
    return pd.factorize(kind)[0]

"""Pairs that EM cannot tell apart, each kind of them fitted once.

Query-document pairs are alike if they were shown and clicked equally often at the same positions
(and after the same last clicks, if the model asks for these). If they start alike, each EM step
gives both the same estimates. So one pair of each kind is enough: in an M-step it counts once for
its own probability, and once for each pair of its kind for the probabilities that all pairs share.
This changes no estimate. Most pairs of a web log have one impression, of which there are few kinds.

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
"""Kinds are used if they leave this share of the pairs or less, since what is left is a copy."""


@dataclass(frozen=True)
class DuplicateGroups:
    """Statistics of one pair a kind: `kind` [pairs] of each, and `repeats` [kinds] of them."""

    statistics: Statistics
    kind: np.ndarray
    repeats: np.ndarray

    @classmethod
    def of(cls, statistics: Statistics) -> DuplicateGroups | None:
        """The kinds of a log's pairs. None if the model has no part per document, or if they would
        leave more than the share WORTH."""
        own = of_documents(statistics.model.parts)
        if not own:
            return None
        kinds_of = _kinds_on_pages if statistics.model.statistics == PAGES else _kinds_of_rows
        kind, kept = kinds_of(statistics, own)
        repeats = np.bincount(kind)
        if len(repeats) > WORTH * len(kind):
            return None

        def some(column: np.ndarray) -> np.ndarray:
            if not column.strides[0]:  # what all rows share
                return np.broadcast_to(column[:1], (len(kept), *column.shape[1:]))
            return np.asfortranarray(column[kept])

        index = {part: some(column) for part, column in statistics.index.items()}
        index |= {part: np.asfortranarray(kind[index[part]]) for part in own}
        sizes = {**statistics.sizes, **dict.fromkeys(own, len(repeats))}
        left = {name: some(getattr(statistics, name)) for name in ("clicks", "where", "number")}
        return cls(replace(statistics, index=index, sizes=sizes, **left), kind, repeats)

    def spread(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Part -> [size] values, where each pair has those of its kind."""
        own = of_documents(self.statistics.model.parts)
        return {part: each[self.kind] if part in own else each for part, each in values.items()}


def _kinds_of_rows(statistics: Statistics, own: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """[pairs] kind of each pair, and the rows of the first pair of each kind."""
    pair, size = statistics.index[own[0]][:, 0], statistics.sizes[own[0]]
    code = pd.factorize(statistics.number)[0] * 2 + statistics.clicks[:, 0]
    for part, column in statistics.index.items():
        if part not in own:
            # Numbered anew each time, so that products fit in int64.
            code = pd.factorize(code * statistics.sizes[part] + column[:, 0])[0]
    # A pair's rows, in any order, by the sum of a random number for each: of a million kinds, two
    # have the same with chance 3e-8.
    marks = np.random.default_rng(0).integers(2**63, size=code.max(initial=-1) + 1)
    sums = np.zeros(size, np.int64)
    np.add.at(sums, pair, marks[code])
    kind = pd.factorize(sums)[0].astype(pair.dtype)
    chosen = np.zeros(size, bool)
    chosen[first_of(kind)] = True
    return kind, np.flatnonzero(chosen[pair])


def _kinds_on_pages(statistics: Statistics, own: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The same of pages."""
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
    alone[rows[first]] = False
    return kind, np.flatnonzero(~alone)

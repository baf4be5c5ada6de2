"""The pages of a log in sets. No two sets share a document, so each can be worked on by itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from twotowers.files.blocks import CELLS
from twotowers.fitting.pair_counts import factor_components
from twotowers.fitting.statistics import Statistics
from twotowers.models.protocol import of_documents


@dataclass(frozen=True)
class PageSet:
    """Numbers of some rows in `Statistics`, and of the query-document pairs on them, which no other
    set has, so that each can be worked on by itself.

    Pairs without a row are in some set, too. `order` [pairs of the log] has the places of all
    pairs, where one set stands behind the other, and `start` that of the first pair in it.
    """

    rows: np.ndarray
    pairs: np.ndarray
    start: int
    order: np.ndarray

    def place(self, pair: np.ndarray) -> np.ndarray:
        """Where pairs of the set are in `pairs`."""
        return self.order[pair] - self.start


def page_sets(statistics: Statistics, *, cells: int = CELLS) -> list[PageSet]:
    """Divide all rows and pairs, about so many cells each; more if pages share documents.

    >>> from twotowers.fitting.statistics import distinct_pages
    >>> from twotowers.models.dependent_click import DependentClick
    >>> pairs = np.array([[0, 3], [1, 2], [3, 4]])
    >>> pages = distinct_pages(pairs, np.ones((3, 2), bool), np.ones((3, 2), bool))
    >>> statistics = Statistics.of_pages(DependentClick(), pages)
    >>> [(each.rows.tolist(), each.pairs.tolist()) for each in page_sets(statistics, cells=2)]
    [([0, 2], [0, 3, 4]), ([1], [1, 2])]
    """
    rows, length = statistics.where.shape
    own = of_documents(statistics.model.parts)
    kind, of_rows = np.zeros(0, int), np.arange(rows)
    if own:
        pair, pairs = statistics.index[own[0]], statistics.sizes[own[0]]
        row, place = np.nonzero(statistics.where)
        # Of a row with one position, no pair meets another.
        kind = (
            np.arange(pairs)
            if length == 1
            else factor_components(row, pair[row, place], factors=pairs)
        )
        of_rows = kind[pair[of_rows, statistics.where.argmax(1)]]
    by_kind = np.argsort(kind, kind="stable")
    order = np.empty_like(by_kind)
    order[by_kind] = np.arange(len(kind))
    by_row = np.argsort(of_rows, kind="stable")
    of_rows = of_rows[by_row]
    starts = np.flatnonzero(np.diff(of_rows, prepend=-1))
    starts = starts[np.diff(starts // max(cells // length, 1), prepend=-1) > 0]
    ends = np.searchsorted(kind[by_kind], of_rows[starts[1:]])
    return [
        PageSet(by_row[start:stop], by_kind[low:high], int(low), order)
        for (start, stop), (low, high) in zip(
            pairwise([*starts, rows]), pairwise([0, *ends, len(kind)]), strict=True
        )
    ]

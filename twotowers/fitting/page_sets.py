"""The pages of a log in sets that share no document, so that each can be worked on by itself.

>>> from twotowers.fitting.statistics import distinct_pages
>>> from twotowers.models.dependent_click import DependentClick
>>> pairs = np.array([[0, 3], [1, 2], [3, 4]])
>>> pages = distinct_pages(pairs, np.ones((3, 2), bool), np.ones((3, 2), bool))
>>> statistics = Statistics.of_pages(DependentClick(), pages)
>>> [(each.rows.tolist(), each.pairs.tolist()) for each in page_sets(statistics, cells=2)]
[([0, 2], [0, 3, 4]), ([1], [1, 2])]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from twotowers.fitting.blocks import CELLS
from twotowers.fitting.statistics import Statistics
from twotowers.models.protocol import of_documents


@dataclass(frozen=True)
class PageSet:
    """Some rows of a log, and the documents on them.

    Attributes:
        rows: of `Statistics`.
        pairs: of the documents; and some that no row has.
        start: the place of the first of them in `order`.
        order: [pairs of the log] their places, if all sets stand one behind the other.
    """

    rows: np.ndarray
    pairs: np.ndarray
    start: int
    order: np.ndarray

    def place(self, pair: np.ndarray) -> np.ndarray:
        """Where pairs of the set are in `pairs`."""
        return self.order[pair] - self.start


def page_sets(statistics: Statistics, *, cells: int = CELLS) -> list[PageSet]:
    """All rows and pairs, in sets of about so many cells: fewer only if the documents of a set
    could not be told apart."""
    rows, length = statistics.where.shape
    own = of_documents(statistics.model.parts)
    kind, of_rows = np.zeros(0, int), np.arange(rows)
    if own:
        pair, pairs = statistics.index[own[0]], statistics.sizes[own[0]]
        first = pair[of_rows, statistics.where.argmax(1)]
        kind = _shown_together(first, pair, statistics.where, pairs)
        of_rows = kind[first]
    by_kind = np.argsort(kind, kind="stable")
    order = np.empty_like(by_kind)
    order[by_kind] = np.arange(len(kind))
    by_row = np.argsort(of_rows, kind="stable")
    of_rows = of_rows[by_row]
    starts = np.flatnonzero(np.diff(of_rows, prepend=-1))
    starts = starts[np.diff(starts // max(cells // length, 1), prepend=-1) > 0]
    ends = np.searchsorted(kind[by_kind], of_rows[starts[1:]])
    return [
        PageSet(by_row[slice(*own)], by_kind[slice(*its)], int(its[0]), order)
        for own, its in zip(pairwise([*starts, rows]), pairwise([0, *ends, len(kind)]), strict=True)
    ]


def _shown_together(
    first: np.ndarray, pair: np.ndarray, where: np.ndarray, pairs: int
) -> np.ndarray:
    """[pairs] a number for each set of pairs that pages link."""
    if pair.shape[1] == 1:
        return np.arange(pairs)
    start = np.broadcast_to(first[:, None], pair.shape)[where]
    links = coo_array((np.ones(len(start), bool), (start, pair[where])), shape=(pairs, pairs))
    return connected_components(links.tocsr(), directed=False)[1]

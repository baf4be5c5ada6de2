"""The pages of a real log, divided at random into training, validation and test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.distinct import number_rows
from twotowers.logs.counts import Counts
from twotowers.logs.page_arrays import read_page_arrays
from twotowers.logs.simulation import Sessions
from twotowers.randomness import stream


@dataclass(frozen=True)
class ObservedPages:
    """The distinct rankings of a log, and its sessions on them.

    Attributes:
        pair: [rankings, positions] int32, number of the query-document pair at each position.
        where: [rankings, positions] bool, False where a page shows no document.
        sessions: of each split. Their `query` is the ranking, and their `documents` are in order.
        ids: columns query and document of the pairs by number.
    """

    pair: np.ndarray
    where: np.ndarray
    sessions: dict[str, Sessions]
    ids: pa.Table

    def counts(self, split: str) -> Counts:
        """Impressions and clicks of a split at each position of each ranking: [1, rankings, K]."""
        pages, (rankings, length) = self.sessions[split], self.pair.shape
        shown = np.bincount(pages.query, minlength=rankings)[:, None] * self.where
        clicked = np.stack(
            [np.bincount(pages.query, pages.clicks[:, k], rankings) for k in range(length)], axis=-1
        )
        place = np.broadcast_to(np.arange(length), self.pair.shape)
        columns = shown, clicked.astype(np.int64), place, place
        return Counts(*(column[None] for column in columns))


def observed_pages(
    path: str | Path,
    shares: Mapping[str, float],
    *,
    positions: int,
    seed: int,
    bootstrap: bool = False,
    places: str | None = None,
) -> ObservedPages:
    """Read a log's pages and divide them.

    Args:
        path: a sessions file (`twotowers.logs.sessions`). Its lanes are read as one.
        shares: of each split, which add up to 1.
        positions: positions on a page.
        seed: divides the log.
        bootstrap: whether the pages of each split are drawn again, with replacement.
        places: see `twotowers.logs.page_arrays.read_page_arrays`.

    Raises:
        InputError: the file is not such a log, is empty, has a page longer than `positions`, or
            has no page for a split.
    """
    log = read_page_arrays(path, positions=positions, places=places)
    code, first = number_rows(np.where(log.where, log.pair + 1, 0))
    sessions = {}
    for split, rows in divide(len(code), shares, seed=seed, path=path, bootstrap=bootstrap).items():
        place = np.broadcast_to(np.arange(positions, dtype=np.uint8), (len(rows), positions))
        clicks, where = log.clicks[rows], log.where[rows]
        sessions[split] = Sessions(code[rows].astype(np.int32), place, clicks, where)
    return ObservedPages(log.pair[first], log.where[first], sessions, log.ids)


def divide(
    pages: int, shares: Mapping[str, float], *, seed: int, path: str | Path, bootstrap: bool = False
) -> dict[str, np.ndarray]:
    """Divide pages at random: the rows of each split, in order.

    Args:
        pages: number of pages.
        shares, seed, bootstrap: see `observed_pages`.
        path: the log, for messages.

    Raises:
        InputError: a split would have no page.
    """
    rng, found = stream("observed pages", seed), {}
    order = rng.permutation(pages)
    ends = np.round(np.cumsum([0, *shares.values()]) * pages).astype(int)
    for split, start, end in zip(shares, ends, ends[1:], strict=False):
        rows = np.sort(order[start:end])
        if not len(rows):
            raise InputError(
                f"its {pages} pages leave none for {split!r}", path=path, field="split"
            )
        found[split] = np.sort(rng.choice(rows, len(rows))) if bootstrap else rows
    return found

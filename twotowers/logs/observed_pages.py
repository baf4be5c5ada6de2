"""The pages of a real log, divided at random into training, validation and test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.distinct import number_rows
from twotowers.logs.counts import Rows
from twotowers.logs.sessions import GROUP, read_sessions
from twotowers.logs.simulation import Sessions
from twotowers.randomness import stream


@dataclass(frozen=True)
class ObservedPages:
    """The distinct rankings of a log, and its sessions on them.

    Attributes:
        pair: [rankings, positions] int32, number of the query-document pair at each position.
        where: [rankings, positions] bool, False behind the end of a page.
        sessions: of each split. Their `query` is the ranking, and their `documents` are in order.
        query, document: [pairs] ids by pair number.
    """

    pair: np.ndarray
    where: np.ndarray
    sessions: dict[str, Sessions]
    query: np.ndarray
    document: np.ndarray

    def counts(self, split: str) -> Rows:
        """Impressions and clicks of a split at each position of each ranking: [1, rankings, K]."""
        pages, (rankings, length) = self.sessions[split], self.pair.shape
        shown = np.bincount(pages.query, minlength=rankings)[:, None] * self.where
        clicked = np.stack(
            [np.bincount(pages.query, pages.clicks[:, k], rankings) for k in range(length)], axis=-1
        )
        place = np.broadcast_to(np.arange(length), self.pair.shape)
        columns = place, place, shown, clicked.astype(np.int64)
        return Rows(*(column[None] for column in columns))


def observed_pages(
    path: str | Path,
    shares: Mapping[str, float],
    *,
    positions: int,
    seed: int,
    bootstrap: bool = False,
) -> ObservedPages:
    """Read a log's pages and divide them.

    Args:
        path: a sessions file (`twotowers.logs.sessions`). Its lanes are read as one.
        shares: of each split, which add up to 1.
        positions: positions on a page.
        seed: divides the log.
        bootstrap: whether the pages of each split are drawn again, with replacement.

    Raises:
        InputError: the file is not such a log, is empty, has a page longer than `positions`, or
            has no page for a split.
    """
    query, document, clicks, lengths = _columns(path, positions)
    where = np.arange(positions) < lengths[:, None]
    queries, query_names = pd.factorize(query)
    queries = np.repeat(queries, lengths)
    documents, document_names = pd.factorize(document)
    number, first = _pairs(queries, documents, len(document_names))
    pair, clicked = np.zeros(where.shape, np.int32), np.zeros(where.shape, bool)
    pair[where], clicked[where] = number, clicks
    del query, document, clicks, queries, documents, number
    code, shown_first = number_rows(np.where(where, pair + 1, 0))
    rng = stream("observed pages", seed)
    order, sessions = rng.permutation(len(code)), {}
    ends = np.round(np.cumsum([0, *shares.values()]) * len(code)).astype(int)
    for split, start, end in zip(shares, ends, ends[1:], strict=False):
        rows = np.sort(order[start:end])
        if not len(rows):
            raise InputError(
                f"its {len(code)} pages leave none for {split!r}", path=path, field="split"
            )
        if bootstrap:
            rows = np.sort(rng.choice(rows, len(rows)))
        place = np.broadcast_to(np.arange(positions, dtype=np.uint8), (len(rows), positions))
        sessions[split] = Sessions(code[rows].astype(np.int32), place, clicked[rows], where[rows])
    return ObservedPages(
        pair[shown_first],
        where[shown_first],
        sessions,
        np.asarray(query_names)[first // len(document_names)],
        np.asarray(document_names)[first % len(document_names)],
    )


def position_counts(path: str | Path, *, positions: int) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks of each position, in one pass that keeps no page: [positions] each.

    Args:
        path, positions: see `observed_pages`.

    Raises:
        InputError: see `observed_pages`.
    """
    shown, clicked = np.zeros(positions, np.int64), np.zeros(positions, np.int64)
    for _, _, clicks, lengths in _batches(path, positions):
        place = np.arange(len(clicks)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        shown += np.bincount(place, minlength=positions)
        clicked += np.bincount(place[clicks], minlength=positions)
    if not shown.any():
        raise InputError("the log is empty", path=path)
    return shown, clicked


def _pairs(queries: np.ndarray, documents: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the pairs of query and document.

    Args:
        queries, documents: [shown] numbers, in the order of their first occurrence.
        size: number of documents.

    Returns:
        [shown] the number of the pair; [pairs] query x size + document of each pair.
    """
    query_of = np.empty(size, queries.dtype)
    query_of[documents] = queries
    if np.array_equal(query_of[documents], queries):
        # No document belongs to two queries, so documents are pairs.
        return documents, query_of * size + np.arange(size)
    return pd.factorize(queries * size + documents)


def _columns(path: str | Path, positions: int) -> tuple[np.ndarray, ...]:
    """The query of each page, all documents and clicks in order, and the lengths of pages."""
    parts = list(_batches(path, positions))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if not len(columns[0]):
        raise InputError("the log is empty", path=path)
    return tuple(columns)


def _batches(path: str | Path, positions: int) -> Iterator[list[np.ndarray]]:
    """The columns of some pages at a time."""
    for batch in read_sessions(path, batch=GROUP):
        lengths = batch["documents"].value_lengths().to_numpy()
        if len(lengths) and (lengths.max() > positions or lengths.min() < 1):
            raise InputError(
                f"pages show {lengths.min()} to {lengths.max()} documents", path=path,
                field="documents", expected=f"1 to {positions}, the 'positions' of the experiment",
            )  # fmt: skip
        columns = batch["query"], batch["documents"].flatten(), batch["clicks"].flatten()
        yield [*(_numpy(column) for column in columns), lengths]


def _numpy(column: pa.Array) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False)

"""A simulated log's pages in memory: the sessions of some lanes and splits, and their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.tables import check_types
from twotowers.logs.cells import Lane, Pairs, pair_keys
from twotowers.logs.counts import LONGEST_DENSE, Counts, Rows, lay_out
from twotowers.logs.sessions import lane_columns, read_sessions, schema_of
from twotowers.logs.simulation import Sessions


def read_lane_sessions(
    path: str | Path, lanes: Sequence[Lane], *, pairs: Mapping[str, Pairs], length: int
) -> dict[str, list[Sessions]]:
    """The pages of the given lanes and splits, in the order of the file, which is read once.

    Args:
        path: the artefact "sessions" (`twotowers.logs.sessions`).
        lanes: the value of every lane column, for each lane wanted.
        pairs: of each split wanted, its query-document pairs.
        length: positions on a page.

    Returns:
        per split a log for each lane, by index into `pairs`.

    Raises:
        InputError: the file cannot be read or has other columns, a lane is missing, or a page
            names a document that is not there, or is longer than `length`.
    """
    ids = {"query": pa.int64(), "documents": pa.list_(pa.int64())}
    columns = {name: pa.string() if isinstance(value, str) else pa.float64()
               for name, value in lanes[0].items()}  # fmt: skip
    schema = schema_of(path)
    check_types(schema, ids | columns, path)
    if others := set(lane_columns(schema)) - set(columns):
        raise InputError(
            f"has lanes {sorted(others)}", path=path, expected=f"lanes {sorted(columns)} only"
        )
    lookups = {split: _Lookup(each, length, path) for split, each in pairs.items()}
    found = {split: [[] for _ in lanes] for split in pairs}
    for batch in read_sessions(path):
        splits = batch["split"].to_numpy(zero_copy_only=False)
        values = {name: batch[name].to_numpy(zero_copy_only=False) for name in columns}
        for split, lookup in lookups.items():
            for number, lane in enumerate(lanes):
                rows = splits == split
                for name, value in lane.items():
                    rows = rows & (values[name] == value)
                if rows.any():
                    part = batch.filter(pa.array(rows))
                    found[split][number].append(lookup.sessions(part))
    for split, logs in found.items():
        for lane, parts in zip(lanes, logs, strict=True):
            if not parts:
                words = ", ".join(f"{name} {value}" for name, value in lane.items())
                raise InputError(f"no pages of split {split!r} with {words}", path=path)
    return {split: [_joined(parts) for parts in logs] for split, logs in found.items()}


def counts_of(logs: Sequence[Sessions], queries: int, length: int) -> Counts | Rows:
    """The same logs as impressions and clicks of cells: [logs, queries, ...].

    Args:
        logs: sessions of each.
        queries: number of queries.
        length: positions on a page, and documents of the longest list.
    """
    return lay_out([_cells(log, queries, length) for log in logs], queries, length)


def _cells(log: Sessions, queries: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of each cell that was shown, its impressions and its clicks."""
    first = (log.query[:, None].astype(np.int64) * length + log.documents) * length
    cell, clicked = (first + np.arange(length))[log.where], log.clicks[log.where]
    if length <= LONGEST_DENSE:
        shown, clicks = (
            np.bincount(each, minlength=queries * length**2) for each in (cell, cell[clicked])
        )
        distinct = np.flatnonzero(shown)
        return distinct, shown[distinct], clicks[distinct]
    distinct, row, shown = np.unique(cell, return_inverse=True, return_counts=True)
    return distinct, shown, np.bincount(row[clicked], minlength=len(distinct))


class _Lookup:
    """Finds the list index of documents by their query and number."""

    def __init__(self, pairs: Pairs, length: int, path: str | Path):
        key = pair_keys(pairs.query, pairs.document)
        self.order = np.argsort(key)
        self.key = key[self.order]
        self.offsets, self.length, self.path = pairs.offsets, length, path

    def sessions(self, pages: pa.RecordBatch) -> Sessions:
        """The pages by index, laid out densely."""
        shown = pages["documents"].value_lengths().to_numpy()
        if shown.min() < 1 or shown.max() > self.length:
            raise InputError(
                f"pages show {shown.min()} to {shown.max()} documents", path=self.path,
                field="documents", expected=f"1 to {self.length}",
            )  # fmt: skip
        key = pair_keys(
            np.repeat(pages["query"].to_numpy(), shown), pages["documents"].flatten().to_numpy()
        )
        found = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        if (unknown := self.key[found] != key).any():
            query, document = divmod(int(key[unknown][0]), 1 << 24)
            raise InputError(
                f"query {query}, document {document} is not in the rankings", path=self.path,
                field="documents",
            )  # fmt: skip
        pair = self.order[found]
        query = np.searchsorted(self.offsets, pair, side="right") - 1
        where = np.arange(self.length) < shown[:, None]
        documents = np.zeros(where.shape, np.min_scalar_type(self.length - 1))
        clicks = np.zeros(where.shape, bool)
        documents[where] = pair - self.offsets[query]
        clicks[where] = pages["clicks"].flatten().to_numpy(zero_copy_only=False)
        first = np.cumsum(shown) - shown
        return Sessions(query[first].astype(np.int32), documents, clicks, where)


def _joined(parts: list[Sessions]) -> Sessions:
    columns = ((part.query, part.documents, part.clicks, part.where) for part in parts)
    return Sessions(*(np.concatenate(each) for each in zip(*columns, strict=True)))

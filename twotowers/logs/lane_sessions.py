"""The pages of a simulated log in memory: sessions of some lanes and splits, and their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.files.tables import check_types
from twotowers.logs.cells import Lane, Lookup, Pairs
from twotowers.logs.counts import LONGEST_DENSE, Counts, lay_out
from twotowers.logs.sessions import read_sessions, schema_of
from twotowers.logs.simulation import Sessions


def read_lane_sessions(
    path: str | Path, lanes: Sequence[Lane], *, pairs: Mapping[str, Pairs], length: int
) -> dict[str, list[Sessions]]:
    """The pages of some lanes and splits, in the order of the file. The file is read once.

    Args:
        path: a sessions file (`twotowers.logs.sessions`).
        lanes: the wanted lanes, each with a value per lane column.
        pairs: the query-document pairs of each wanted split.
        length: positions on a page.

    Returns:
        for each split a log per lane. Its entries are indices into `pairs`.
    """
    ids = {"query": pa.int64(), "documents": pa.list_(pa.int64())}
    columns = {
        name: pa.string() if isinstance(value, str) else pa.float64()
        for name, value in lanes[0].items()
    }
    check_types(schema_of(path), ids | columns, path)
    lookups = {split: Lookup(each, path) for split, each in pairs.items()}
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
                    found[split][number].append(_sessions(part, lookup, length))
    return {split: [_joined(parts) for parts in logs] for split, logs in found.items()}


def counts_of(logs: Sequence[Sessions], queries: int, length: int) -> Counts:
    """The same logs as impressions and clicks of cells: [logs, queries, ...].

    Args:
        logs: the sessions of each log.
        queries: number of queries.
        length: positions on a page, and documents of the longest list.
    """
    return lay_out([_cells(log, queries, length) for log in logs], queries, length)


def _cells(log: Sessions, queries: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the shown cells, their impressions and their clicks."""
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


def _sessions(pages: pa.RecordBatch, lookup: Lookup, length: int) -> Sessions:
    """The pages as dense arrays of indices."""
    shown = pages["documents"].value_lengths().to_numpy()
    pair = lookup.pairs(
        np.repeat(pages["query"].to_numpy(), shown), pages["documents"].flatten().to_numpy()
    )
    where = np.arange(length) < shown[:, None]
    documents = np.zeros(where.shape, np.min_scalar_type(length - 1))
    clicks = np.zeros(where.shape, bool)
    documents[where] = lookup.document[pair]
    clicks[where] = pages["clicks"].flatten().to_numpy(zero_copy_only=False)
    query = lookup.query[pair[np.cumsum(shown) - shown]]
    return Sessions(query.astype(np.int32), documents, clicks, where)


def _joined(parts: list[Sessions]) -> Sessions:
    columns = ((part.query, part.documents, part.clicks, part.where) for part in parts)
    return Sessions(*(np.concatenate(each) for each in zip(*columns, strict=True)))

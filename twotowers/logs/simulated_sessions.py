"""Logs of any user, simulated page by page and streamed; and such a log in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.logs.cells import Lane, Lookup, Pairs
from twotowers.logs.counts import Counts, lay_out
from twotowers.logs.policies import NoisyOrder
from twotowers.logs.sessions import page_batch, read_sessions
from twotowers.logs.simulation import CHUNK, Sessions

Sampler = Callable[..., np.ndarray]
"""(query, documents, where, rng=) -> clicks, as `stream_sessions` describes them."""


def stream_sessions(
    order: np.ndarray | NoisyOrder,
    clicks: Sampler,
    lengths: np.ndarray,
    *,
    sessions: int,
    temperature: float,
    rng: np.random.Generator,
    split: str,
    queries: np.ndarray,
    documents: np.ndarray,
    lanes: Mapping[str, str | float],
) -> Iterator[pa.RecordBatch]:
    """Simulate pages, CHUNK at a time, in random order: batches for `write_sessions`.

    The query of each page is drawn uniformly. The page has the policy's ranking or, with
    probability `temperature`, a uniformly random one. Memory does not grow with their number.

    Args:
        order: [queries, positions] list index of the policy's document at each position.
            Entries behind the end of a list are ignored. Or a policy that draws them.
        clicks: a function (query, documents, where, rng=) -> clicks for a chunk of pages: query
            [pages] indices, documents [pages, positions] list indices, where [pages, positions]
            False behind the end of a list, clicks [pages, positions] bool.
        lengths: [queries] documents of each query, at most `positions`.
        queries, documents: [queries], [queries, positions] whole numbers: ids by index.
        lanes: lane columns, one value each.
    """
    number, length = order.shape
    for start in range(0, sessions, CHUNK):
        pages = min(CHUNK, sessions - start)
        query = rng.integers(number, size=pages)
        where = np.arange(length) < lengths[query, None]
        shown = order.draw(query, rng) if isinstance(order, NoisyOrder) else order[query]
        shuffled = np.flatnonzero(rng.random(pages) < temperature)
        # Documents are sorted by random numbers. Padding gets a larger number and stays behind.
        keys = np.where(where[shuffled], rng.random((len(shuffled), length)), 2.0)
        shown[shuffled] = keys.argsort(axis=1)
        clicked = np.asarray(clicks(query, shown, where, rng=rng)).astype(bool) & where
        # Behind the end of a list an index can have any value.
        shown = documents[query[:, None], np.where(where, shown, 0)]
        ids = (each.astype(np.int64) for each in (queries[query], shown))
        yield page_batch(*ids, clicked, split, where, lanes)


def read_lane_sessions(
    path: str | Path, lanes: Sequence[Lane], *, pairs: Mapping[str, Pairs], length: int
) -> dict[str, list[Sessions]]:
    """The pages of some lanes and splits, in the order of the file, which is read once.

    For each split a log per lane, whose entries are indices into the `pairs` of the split.
    """
    lookups = {split: Lookup(each) for split, each in pairs.items()}
    batches_of = {split: [[] for _ in lanes] for split in pairs}
    for batch in read_sessions(path):
        splits = batch["split"].to_numpy(zero_copy_only=False)
        values = {name: batch[name].to_numpy(zero_copy_only=False) for name in lanes[0]}
        for split, lookup in lookups.items():
            for number, lane in enumerate(lanes):
                rows = splits == split
                for name, value in lane.items():
                    rows = rows & (values[name] == value)
                if rows.any():
                    part = batch.filter(pa.array(rows))
                    batches_of[split][number].append(_sessions(part, lookup, length))
    return {split: [_joined(parts) for parts in logs] for split, logs in batches_of.items()}


def counts_of(logs: Sequence[Sessions], queries: int, length: int) -> Counts:
    """The same logs as impressions and clicks of cells: [logs, queries, ...]."""
    return lay_out([_cells(log, length) for log in logs], queries, length)


def _cells(log: Sessions, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the shown cells, their impressions and their clicks."""
    first = (log.query[:, None].astype(np.int64) * length + log.documents) * length
    cell, clicked = (first + np.arange(length))[log.where], log.clicks[log.where]
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

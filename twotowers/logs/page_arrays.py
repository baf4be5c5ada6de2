"""The pages of a file as arrays, with query-document pairs numbered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.columns import Rows
from twotowers.logs.sessions import GROUP, bias_features, read_sessions

LONGEST = 200
"""Positions of a page whose end is cut off."""


@dataclass(frozen=True)
class Pages:
    """Pages with their clicks: all of a log, in its order, or the distinct ones.

    Attributes:
        pair: [rows, positions] number of the query-document pair at each position.
        clicks, where: [rows, positions] bool; `where` is False where a page shows no document:
            behind its end, and in gaps.
        pairs: number of query-document pairs.
        number: [rows] how often the log has the page, fractions allowed; None if once.
        ids: columns query and document of the pairs by number, if pairs have ids.
        bias: [rows, positions, features] float32, bias features; 0 where no document is shown.
            None if none were asked for.
    """

    pair: np.ndarray
    clicks: np.ndarray
    where: np.ndarray
    pairs: int
    number: np.ndarray | None = None
    ids: pa.Table | None = None
    bias: np.ndarray | None = None


def read_page_arrays(
    path: str | Path,
    *,
    positions: int,
    rows: np.ndarray | None = None,
    places: str | None = None,
    cut: bool = False,
    bias: Sequence[str] = (),
) -> Pages:
    """Read pages. Pairs are numbered in the order of their first occurrence.

    Args:
        path, positions, rows: see `checked_pages`.
        places: a bias feature with the position of each document, from 1 and rising, so that gaps
            stay; None if documents have the positions 1, 2, ...
        cut: whether documents below the last position are left out. Otherwise they are an error.
        bias: bias features to read, columns of numbers.
    """
    longest = LONGEST if cut else positions
    parts = [
        [
            numpy_of(batch["query"]),
            *map(numpy_of, shown_and_clicked(batch)),
            _numbers(batch, bias, place),
            lengths,
            _where(batch, lengths, longest, places, place),
        ]
        for place, batch, lengths in checked_pages(path, positions=longest, rows=rows)
    ]
    if cut:
        parts = [_cut(*part, positions, path) for part in parts]
    query, document, clicks, numbers, lengths, where = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    del parts
    queries, query_names = pd.factorize(query)
    queries = np.repeat(queries, lengths)
    documents, document_names = pd.factorize(document)
    number, first = _pairs(queries, documents, len(document_names))
    pair, clicked = np.zeros(where.shape, np.int32), np.zeros(where.shape, bool)
    pair[where], clicked[where] = number, clicks
    names = {
        "query": np.asarray(query_names)[first // len(document_names)],
        "document": np.asarray(document_names)[first % len(document_names)],
    }
    told = np.zeros((*where.shape, len(bias)), np.float32) if bias else None
    if told is not None:
        told[where] = numbers
    return Pages(pair, clicked, where, len(first), ids=pa.table(names), bias=told)


def checked_pages(
    path: str | Path, *, positions: int, rows: np.ndarray | None = None
) -> Iterator[tuple[Rows, pa.RecordBatch, np.ndarray]]:
    """Some pages of a file at a time: their place, and how many documents each of them has.

    Args:
        path: a sessions file (`twotowers.logs.sessions`). Its lanes are read as one.
        positions: positions on a page.
        rows: [pages] bool, which pages of the file are wanted; None for all.
    """
    start, found = 0, False
    for batch in read_sessions(path, batch=GROUP):
        place, start = Rows(path, start), start + len(batch)
        if rows is not None:
            wanted = rows[place.before : start]
            place = replace(place, number=np.flatnonzero(wanted))
            batch = batch.filter(pa.array(wanted))
        found = found or len(batch) > 0
        lengths = batch["documents"].value_lengths().to_numpy()
        if len(lengths) and (lengths.max() > positions or lengths.min() < 1):
            raise InputError(
                f"pages show {lengths.min()} to {lengths.max()} documents",
                path=path,
                field="documents",
                expected=f"1 to {positions}, the 'positions' of the experiment",
            )
        yield place, batch, lengths
    if not found:
        raise InputError("the log is empty", path=path)


def _where(batch, lengths, positions: int, places: str | None, place: Rows) -> np.ndarray:
    """[pages, positions] bool: where pages show a document."""
    if places is None:
        return np.arange(positions) < lengths[:, None]
    _check_there(batch, places, place, "a bias feature with the position of each document")
    at, page = numpy_of(batch[places].flatten()), np.repeat(np.arange(len(lengths)), lengths)
    rising = (np.diff(at) > 0) | (np.diff(page) > 0)
    place.inside(batch[places]).check(
        (at >= 1) & (at <= positions) & np.append(True, rising)[: len(at)],
        places,
        lambda wrong: f"{at[wrong]} was found",
        f"rising positions from 1 to {positions}, the 'positions' of the experiment",
    )
    where = np.zeros((len(lengths), positions), bool)
    where[page, at - 1] = True
    return where


def _check_there(batch: pa.RecordBatch, name: str, place: Rows, expected: str) -> None:
    if name not in bias_features(batch.schema):
        raise InputError("the column is missing", path=place.path, field=name, expected=expected)


def _numbers(batch: pa.RecordBatch, names: Sequence[str], place: Rows) -> np.ndarray:
    """[shown, features] float32: some bias features of all pages, one page after the other."""
    columns = np.zeros((len(batch["documents"].flatten()), len(names)), np.float32)
    for at, name in enumerate(names):
        expected = "a number for each document; the data source's reading.bias keeps columns"
        _check_there(batch, name, place, expected)
        columns[:, at] = place.inside(batch[name]).real(batch[name].flatten(), name)
    return columns


def _cut(
    query, document, clicks, numbers, lengths, where, positions: int, path
) -> list[np.ndarray]:
    """The columns of some pages without what is below the last position."""
    where, kept = where[:, :positions], np.nonzero(where)[1] < positions
    if not (shown := where.sum(1)).all():
        raise InputError(
            f"a page of query {query[shown == 0][0]} shows nothing down to position {positions}",
            path=path,
            field="positions",
            expected="more positions",
        )
    return [query, document[kept], clicks[kept], numbers[kept], shown, where]


def shown_and_clicked(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """The documents of all pages, one after the other, and whether each was clicked."""
    return batch["documents"].flatten(), batch["clicks"].flatten()


def numpy_of(column: pa.Array) -> np.ndarray:
    """A column as an array. Texts and bits are copied."""
    return column.to_numpy(zero_copy_only=False)


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

"""Reader of logs that know documents by features: a row per result page, with a list of vectors.

The layout of Baidu-ULTR-UVA in clax-datasets: many parquet files of pages with the columns
`query_doc_features` (or `features`, by version), `positions` and `clicks`, and one file of
annotations with `query_doc_features` (or `features`) and `labels`. There are no ids. A document is
its vector: its number is a hash of it, so that equal vectors are one document.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.artefacts import Source, files_of
from twotowers.files.batches import placed_batches
from twotowers.files.columns import Rows
from twotowers.files.distinct import Seen, hashed
from twotowers.files.rankings import Rankings
from twotowers.logs.formats.pages import conformed
from twotowers.logs.layouts import named
from twotowers.logs.sessions import Stream
from twotowers.logs.strays import Tally

LAYOUT = "a row per result page, with a vector per document"

OPTIONAL = ("query", "split", "user")
"""Columns that are read if they exist."""
FEATURES, CLICKS, LABELS = "features", "clicks", "labels"
ROWS = 1_000
"""Pages whose vectors are in memory at a time: 32 MB, of ten documents and 768 numbers each."""


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    bias: Sequence[str] = (),
    repeats: str = "drop",
) -> Stream:
    """Read pages, without the features of their documents; see `documents_of`.

    A document is a number below 2^63. Its position is its place in the list; a bias feature may
    have that with the places that documents without content left free. Without a query all pages
    have query 0.
    """
    tally = Tally(path, repeats=repeats)
    files = [
        (each, named(each, (FEATURES, CLICKS), columns, bias, OPTIONAL)) for each in files_of(path)
    ]
    return Stream(_pages(files, tally), tally.seen)


def documents_of(
    path: str | Path, *, columns: Mapping[str, str] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The distinct documents of a log: numbers [documents], features [documents, width] float32.

    All numbers are in memory, eight bytes each, and no features but those of a batch.
    """
    seen, width = Seen(), None
    # The other columns are of pages, and `read` checks them.
    own = {FEATURES: columns[FEATURES]} if columns and FEATURES in columns else {}
    for file in files_of(path):
        names = named(file, [FEATURES], own, (), ())
        for rows, batch in placed_batches(file, [names[FEATURES]], rows=ROWS):
            _, values = _vectors(batch[names[FEATURES]], rows, width)
            width = values.shape[1]
            numbers = numbers_of(values)
            fresh = seen.new(numbers)
            if len(fresh):
                yield numbers[fresh], values[fresh]


def read_annotations(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Rankings:
    """Read annotated documents: a row per query, with lists of vectors and of labels.

    Queries are numbered from 0 in the order of rows.
    """
    lengths, labels, features, width = [], [], [], None
    for file in files_of(path):
        names = named(file, (FEATURES, LABELS), columns, (), ())
        for rows, batch in placed_batches(file, list(names.values()), rows=ROWS):
            offsets, values = _vectors(batch[names[FEATURES]], rows, width)
            width = values.shape[1]
            own = np.diff(offsets)
            labels.append(_labels(batch[names[LABELS]], own, rows))
            lengths.append(own)
            features.append(values)
    if not lengths:
        raise InputError("there is no query", path=path, expected="a row per query")
    return Rankings.of_lists(*map(np.concatenate, (lengths, labels, features)))


def numbers_of(vectors: np.ndarray) -> np.ndarray:
    """[documents] the `hashed` bytes of each row."""
    rows = np.ascontiguousarray(vectors, "<f4")
    # -0.0 and 0.0 are one number.
    whole = (rows + np.float32(0)).view(np.uint8).reshape(len(rows), -1)
    return hashed(row.tobytes() for row in whole)


def _pages(files: list, tally: Tally) -> Iterator[pa.RecordBatch]:
    width = None
    for file, names in files:
        tally.path = file
        for rows, batch in placed_batches(file, list(names.values()), rows=ROWS):
            page = {ours: batch[theirs] for ours, theirs in names.items()}
            offsets, values = _vectors(page.pop(FEATURES), rows, width)
            width = values.shape[1]
            lists = pa.array(offsets, pa.int32())
            page["documents"] = pa.ListArray.from_arrays(lists, pa.array(numbers_of(values)))
            yield conformed(page, len(batch), rows, tally)


def _vectors(column: pa.Array, rows: Rows, width: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Where each page's vectors begin and end [pages + 1], and all of them [documents, width]."""
    rows.a_list(column, FEATURES)
    inside, vectors = rows.inside(column), column.flatten()
    if vectors.null_count:
        inside.check(
            vectors.is_valid(), FEATURES, lambda at: "a vector is missing", "a vector per document"
        )
    offsets = np.append(0, np.cumsum(column.value_lengths()))
    return offsets, inside.vectors(vectors, FEATURES, width)


def _labels(column: pa.Array, lengths: np.ndarray, rows: Rows) -> np.ndarray:
    """[documents] float32."""
    own = rows.a_list(column, LABELS).value_lengths().to_numpy()
    rows.check(
        (own == lengths) & (own > 0),
        LABELS,
        lambda at: f"{own[at]} labels and {lengths[at]} documents",
        "a label per document, and a document or more",
    )
    return rows.inside(column).labels(column.flatten(), LABELS)

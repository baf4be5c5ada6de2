"""Ragged lists of documents per query, and their parquet form.

A row is a query-document pair. Rows of a query are contiguous. `document` is the document's
0-based number within its query in the source file. It stays the same when lists are truncated or
reordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.files.artefacts import atomic
from twotowers.files.tables import MATRIX, matrix_of, read_table, rows_of

TYPES = {
    "query": pa.int64(),
    "document": pa.int32(),
    "label": pa.float32(),
    "features": None,  # rows of float32, whose width depends on the data set
}


@dataclass(frozen=True)
class Rankings:
    """Documents of queries, with relevance labels and features.

    Attributes:
        query: [rows] int64, query ids. Rows of a query are contiguous.
        document: [rows] int32, the document's 0-based number within its query.
        label: [rows] float32, graded relevance.
        features: [rows, width] float32.
    """

    query: np.ndarray
    document: np.ndarray
    label: np.ndarray
    features: np.ndarray

    @classmethod
    def of_lists(
        cls,
        lengths: np.ndarray,
        label: np.ndarray,
        features: np.ndarray,
        ids: np.ndarray | None = None,
    ) -> Rankings:
        """Rows of whole lists [queries], with ids or numbers from 0, in the order of the source."""
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        query = np.repeat(np.arange(len(lengths)) if ids is None else ids, lengths)
        return cls(query, (np.arange(len(query)) - first).astype(np.int32), label, features)

    @property
    def offsets(self) -> np.ndarray:
        """[queries + 1] int64: rows offsets[i]:offsets[i + 1] belong to the i-th query."""
        changes = np.flatnonzero(np.diff(self.query)) + 1
        return np.concatenate([[0], changes, [len(self.query)]]).astype(np.int64)

    @property
    def queries(self) -> np.ndarray:
        """[queries] int64: query ids in order of appearance."""
        return self.query[self.offsets[:-1]]

    @property
    def lengths(self) -> np.ndarray:
        """[queries] int64: number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def query_of_row(self) -> np.ndarray:
        """[rows] int64: number of the query of each row, from 0."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    def first(self, queries: int) -> Rankings:
        """The first queries, or all if there are fewer."""
        return self.take(slice(self.offsets[: queries + 1][-1]))

    def padded(self, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
        """Columns [rows] as rectangles [queries, documents], and last, where these hold a document.

        They are as wide as the longest list, with zeros behind the end of each.
        """
        length = int(self.lengths.max())
        return *(pad(each, self.offsets, length) for each in columns), mask(self.lengths, length)

    def take(self, rows: np.ndarray | slice) -> Rankings:
        """The given rows (index array, mask or slice), in the given order."""
        return Rankings(
            self.query[rows], self.document[rows], self.label[rows], self.features[rows]
        )


def pad(values: np.ndarray, offsets: np.ndarray, length: int) -> np.ndarray:
    """Lay ragged rows out as [queries, length, ...], with zeros behind the end of each list.

    `offsets` [queries + 1] are of rows. No list may be longer.
    """
    lengths = np.diff(offsets)
    padded = np.zeros((len(lengths), length, *values.shape[1:]), values.dtype)
    padded[mask(lengths, length)] = values
    return padded


def mask(lengths: np.ndarray, length: int) -> np.ndarray:
    """[queries, length] bool: True where the padded rectangle holds a document."""
    return np.arange(length) < np.asarray(lengths)[:, None]


def rank(rankings: Rankings, scores: np.ndarray, *, top: int | None = None) -> Rankings:
    """Sort the documents of each query by scores [rows], the highest first, and keep `top`, or all.

    Ties stay in order, so that documents with the same features are neighbours.
    """
    return rankings.take(best_rows(rankings, scores, top))


def best_rows(rankings: Rankings, scores: np.ndarray, top: int | None = None) -> np.ndarray:
    """[kept] numbers of rows: query by query, the highest of the scores [rows] first.

    Of each query the first `top` stay, or all.
    """
    order = np.lexsort((-scores, rankings.query_of_row))
    place = np.arange(len(order)) - rankings.offsets[rankings.query_of_row]
    return order[place < (np.inf if top is None else top)]


def write_rankings(rankings: Rankings, path: str | Path) -> None:
    """Write the four columns to parquet, features as rows of float32."""
    columns = {
        "query": pa.array(rankings.query, pa.int64()),
        "document": pa.array(rankings.document, pa.int32()),
        "label": pa.array(rankings.label, pa.float32()),
        "features": rows_of(rankings.features),
    }
    with atomic(path) as temporary:
        pq.write_table(pa.table(columns), temporary, **MATRIX)


def read_rankings(path: str | Path) -> Rankings:
    """Read what `write_rankings` wrote."""
    table = read_table(path, TYPES)
    return Rankings(
        *(table[name].to_numpy() for name in list(TYPES)[:3]), matrix_of(table["features"])
    )

"""The features of documents that a log knows by number: written as a stream, read as a matrix.

A parquet file with a row per document and the columns

    document   int64, as in the log's `documents`; no document twice
    features   a row of float32, as bytes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from twotowers.files.tables import MATRIX, matrix_of, read_table, rows_of, write_batches


@dataclass(frozen=True)
class Described:
    """Documents, rising int64 [documents], and their features, float32 [documents, width]."""

    document: np.ndarray
    features: np.ndarray

    def rows(self, documents: np.ndarray) -> np.ndarray:
        """The row of each of some documents."""
        return np.searchsorted(self.document, documents)


@dataclass(frozen=True)
class Gathered:
    """The features of the documents on lists, copied only where they are read.

    It is indexed by lists, as an array [lists, places, width] is; `row` [lists, places] are rows of
    `table` [rows, width].

    Example:
        >>> lists = Gathered(np.eye(3), np.array([[2, 0], [1, 1]]))
        >>> lists.shape, lists[1].tolist()
        ((2, 2, 3), [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    """

    table: Any
    row: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """[lists, places, width]."""
        return (*self.row.shape, self.table.shape[-1])

    @property
    def ndim(self) -> int:
        """3."""
        return len(self.shape)

    def __getitem__(self, lists: Any) -> Any:
        return self.table[self.row[lists]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.table[self.row], dtype)


@dataclass(frozen=True)
class Several:
    """What towers of several kinds read of the documents on lists, indexed by lists.

    `of` has [lists, places, ...] by name, perhaps `Gathered`: `features` of documents, `pair`, the
    number of the query-document pair, and `bias`, further features of the place.
    """

    of: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """[lists, places, numbers of a place]."""
        every = list(self.of.values())
        width = sum(each.shape[2] if len(each.shape) > 2 else 1 for each in every)
        return (*every[0].shape[:2], width)

    @property
    def ndim(self) -> int:
        """3."""
        return 3

    def __getitem__(self, lists: Any) -> Several:
        return Several({name: each[lists] for name, each in self.of.items()})


def write_documents(path: str | Path, batches: Iterable[tuple[np.ndarray, np.ndarray]]) -> int:
    """Write [documents] numbers and [documents, width] features, as float32; the number written."""

    def tables() -> Iterator[pa.Table]:
        for document, features in batches:
            yield pa.table(
                {"document": pa.array(document, pa.int64()), "features": rows_of(features)}
            )

    return write_batches(path, tables(), **MATRIX)


def read_documents(path: str | Path) -> Described:
    """Read what `write_documents` wrote."""
    table = read_table(path, {"document": pa.int64(), "features": None})
    document = table["document"].to_numpy()
    order = np.argsort(document, kind="stable")
    return Described(document[order], matrix_of(table["features"])[order])


def inputs_of(rows: Mapping[str, Any], tables: Mapping[str, Any]) -> Any:
    """What towers read, from rows of tables, or numbers where there is no table."""
    named = {
        name: Gathered(tables[name], rows[name]) if name in tables else rows[name]
        for name in ("features", "pair", "bias")
        if name in rows
    }
    return Several(named) if len(named) > 1 else next(iter(named.values()))

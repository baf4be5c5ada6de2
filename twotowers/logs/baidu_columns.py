"""Columns of the files of Baidu-ULTR-UVA, checked: every error names file, row and column."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.batches import whole_numbers

EMBEDDING, LABEL = "query_document_embedding", "label"
TOKENS = ("query", "title", "abstract")
LARGEST_LABEL = 2**24


def row_of(row: int) -> Callable[[int], str]:
    return lambda at: f"row {row + at + 1}"


def present_column(column: pa.Array, name: str, file: Path, row: int) -> pa.Array:
    """The column, if no value is missing."""
    if column.null_count:
        at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"row {row + at + 1}: a value is missing", path=file, field=name, expected="a value"
        )
    return column


def whole_column(batch, name: str, file: Path, row: int, low: int = 0) -> np.ndarray:
    column = batch[name]
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return whole_numbers(column, path=file, field=name, place=row_of(row), low=low)


def id_columns(batch: pa.RecordBatch, names: Sequence[str], file: Path, row: int) -> list[pa.Array]:
    found = []
    for name in names:
        column = present_column(batch[name], name, file, row)
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise InputError(
                f"has type {str(column.type)[:40]}", path=file, field=name, expected="text"
            )
        found.append(column)
    return found


def hashed_texts(texts: pa.Array) -> np.ndarray:
    digests = (hashlib.blake2b(each.encode(), digest_size=8) for each in texts.to_pylist())
    found = np.frombuffer(b"".join(each.digest() for each in digests), "<u8")
    return (found >> np.uint64(1)).astype(np.int64)


def feature_matrix(batch, columns, file: Path, row: int, rows: np.ndarray, width) -> np.ndarray:
    """[rows, width] float32 of a batch whose rows are `rows` of the file's, counted from `row`."""
    parts = []
    for name in columns:
        column = batch[name]
        if column.null_count:
            at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise wrong_row(file, row, rows, at, name, "a value is missing")
        if name == EMBEDDING:
            own = None if width is None else width - len(columns) + 1
            values = vector_column(column, file, row, rows, own)
        else:
            values = number_column(column, column, file, name)[:, None]
            values = np.sign(values) * np.log1p(np.abs(values))
        if not (good := np.isfinite(values)).all():
            at, place = (int(each[0]) for each in np.nonzero(~good))
            raise wrong_row(file, row, rows, at, name, f"{values[at, place]} was found")
        parts.append(values)
    return np.hstack(parts)


def wrong_row(file, row, rows, at, name, message, expected="finite numbers") -> InputError:
    return InputError(
        f"row {row + int(rows[at]) + 1}: {message}", path=file, field=name, expected=expected
    )


def vector_column(column: pa.Array, file: Path, row: int, rows: np.ndarray, width) -> np.ndarray:
    if not hasattr(column, "value_lengths"):
        raise InputError(
            f"has type {str(column.type)[:40]}", path=file, field=EMBEDDING, expected="lists"
        )
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    width = width or (int(lengths[0]) if len(lengths) else 0)
    if (other := (lengths != width) | (lengths == 0)).any():
        at = int(np.flatnonzero(other)[0])
        expected = f"{width or 'some'} numbers, as before"
        raise wrong_row(
            file, row, rows, at, EMBEDDING, f"a vector of {lengths[at]} numbers", expected
        )
    return number_column(column.flatten(), column, file, EMBEDDING).reshape(len(column), width)


def number_column(flat: pa.Array, column: pa.Array, file: Path, name: str) -> np.ndarray:
    if not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        raise InputError(
            f"has type {str(column.type)[:40]}", path=file, field=name, expected="numbers"
        )
    # Arrow's own cast of half precision is slower than NumPy's. Missing numbers become NaN.
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32)


def label_column(column: pa.Array, file: Path, row: int) -> np.ndarray:
    labels = number_column(column, column, file, LABEL)
    if (bad := ~((labels >= 0) & (labels <= LARGEST_LABEL))).any():
        at = int(np.flatnonzero(bad)[0])
        found = column[at].as_py()
        raise InputError(
            f"row {row + at + 1}: {'no value' if found is None else found} was found",
            path=file,
            field=LABEL,
            expected="a number from 0 on",
        )
    return labels


def text_columns(
    batch: pa.RecordBatch, file: Path, row: int, rows: np.ndarray
) -> dict[str, pa.Array]:
    found = {}
    for name in TOKENS:
        column = present_column(batch[name], name, file, row)
        flat = column.flatten() if hasattr(column, "value_lengths") else None
        if flat is None or not pa.types.is_integer(flat.type):
            raise InputError(
                f"has type {str(column.type)[:40]}",
                path=file,
                field=name,
                expected="a list of token ids",
            )
        tokens = flat.to_numpy(zero_copy_only=False)
        if flat.null_count or (len(tokens) and (tokens.min() < 0 or tokens.max() >= 2**31)):
            bad = ~((tokens >= 0) & (tokens < 2**31))
            at = np.searchsorted(np.cumsum(column.value_lengths()), np.argmax(bad), side="right")
            raise wrong_row(
                file,
                row,
                rows,
                int(at),
                name,
                f"{flat[int(np.argmax(bad))]} was found",
                "token ids from 0 on",
            )
        found[name] = pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(column.value_lengths())), pa.int32()),
            pa.array(tokens.astype(np.int32)),
        )
    return found

"""Parquet tables, and the one check of their columns and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import InputError


@contextmanager
def opened(path: str | Path, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a parquet file for reading.

    Args:
        path: the file.
        dictionaries: text columns to read as indices into their distinct values.

    Raises:
        InputError: the file is missing, damaged or of another format.
    """
    try:
        # Arrow would take `key=value` in a path for a column, so it gets an open file. With its
        # buffer, Arrow would keep all of the file that it has read.
        options = {"read_dictionary": dictionaries, "pre_buffer": False}
        with open(path, "rb") as raw, pq.ParquetFile(raw, **options) as file:
            yield file
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=path, expected="a parquet file") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"the file is damaged ({str(error)[:200]})",
            path=path,
            expected="a whole parquet file; if the pipeline made it, delete it and rerun",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("holds text that is not UTF-8", path=path) from error


def check_types(found: pa.Schema, types: Mapping[str, pa.DataType | None], path: object) -> None:
    """Raise InputError unless each column is there once and has its type (None allows any)."""
    for name in types:
        times = found.names.count(name)
        if times != 1:
            raise InputError(
                f"there are {times} columns of that name" if times else "the column is missing",
                path=path,
                field=name,
                expected=", ".join(types),
            )
    for name, wanted in types.items():
        if wanted is not None and (kind := found.field(name).type) != wanted:
            raise InputError(
                f"has type {str(kind)[:40]}", path=path, field=name, expected=str(wanted)
            )


def read_table(path: str | Path, types: Mapping[str, pa.DataType | None]) -> pa.Table:
    """The columns of `types`.

    Raises:
        InputError: the file cannot be read, or a column is missing, occurs twice, has another
            type (None allows any) or has a missing value.
    """
    with opened(path) as file:
        check_types(file.schema_arrow, types, path)
        table = file.read(list(types))
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise InputError(f"missing in {column.null_count} rows", path=path, field=name)
    return table

"""Parquet tables, and the one check of their columns and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.columns import check_types

if TYPE_CHECKING:
    import pandas as pd

MATRIX = {"compression": {"features": "lz4"}, "compression_level": None, "use_dictionary": False}
"""How a column of `rows_of` that is called features is written: fits spend a tenth of their time on
reading it. Floats hardly compress, so a dictionary would only cost time."""

FORMULA = re.compile(r"\s*(=|[+@-].*[(|!])", re.DOTALL)
"""Text that spreadsheets compute, such as =1+1. Ids such as -x are none: nothing is called."""


def as_cell(value: Any) -> Any:
    """A value of a csv file. An apostrophe stands before text that a spreadsheet would compute.

    Example:
        >>> as_cell("=HYPERLINK(0)"), as_cell("+1|'/C calc'!A0"), as_cell("-1"), as_cell(-1)
        ("'=HYPERLINK(0)", "'+1|'/C calc'!A0", '-1', -1)
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def write_csv(table: pd.DataFrame, path: str | Path, **options: Any) -> None:
    """Write a table as csv, with values of `as_cell`; `options` are of `DataFrame.to_csv`."""
    texts = table.select_dtypes(["object", "string"])
    table = table.assign(**{name: texts[name].map(as_cell) for name in texts})
    table.rename(columns=as_cell).to_csv(path, index=False, lineterminator="\n", **options)


def rows_of(matrix: np.ndarray) -> pa.Array:
    """A matrix as a column. Each row holds its float32 numbers as bytes.

    Parquet stores a nesting level with each number of a list, and takes four times as long to read.

    Example:
        >>> matrix_of(pa.chunked_array([rows_of(np.eye(2))]))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    values = np.ascontiguousarray(matrix, np.float32)
    kind = pa.binary(values.itemsize * values.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def matrix_of(column: pa.ChunkedArray) -> np.ndarray:
    """[rows, width] float32: what `rows_of` was given."""
    rows = column.combine_chunks()
    values = np.frombuffer(rows.buffers()[1] or b"", np.float32)
    return values.reshape(-1, rows.type.byte_width // values.itemsize)[rows.offset :][: len(rows)]


@contextmanager
def opened(path: str | Path, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a parquet file; `dictionaries` are text columns to read as indices into their values."""
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


def read_table(path: str | Path, types: Mapping[str, pa.DataType | None]) -> pa.Table:
    """The columns of `types`."""
    with opened(path) as file:
        check_types(file.schema_arrow, types, path)
        return file.read(list(types))


def write_batches(
    path: str | Path,
    batches: Iterable[pa.RecordBatch | pa.Table],
    *,
    group: int | None = None,
    seen: Mapping | None = None,
    schema: pa.Schema | None = None,
    **options: object,
) -> int:
    """Write batches of one schema as a parquet file, all or nothing; the number of rows.

    One batch is in memory at a time. With `group` rows in a row group, the file has the same bytes
    however rows are cut into batches; without, each batch is a row group. `seen` has numbers for
    the metadata, read after the last batch; the schema is of a file without batches; options are of
    `pyarrow.parquet.ParquetWriter`.
    """
    rows, writer, waiting = 0, None, []
    options = {"compression": "zstd", "compression_level": 1, **options}
    with atomic(path) as temporary:
        try:
            for batch in chain(batches, [None]):
                if batch is not None:
                    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
                    writer = writer or pq.ParquetWriter(temporary, table.schema, **options)
                    waiting.append(table)
                    rows += len(table)
                if (ready := sum(map(len, waiting))) and (batch is None or ready >= (group or 1)):
                    # One piece, so that the file does not depend on how batches were cut.
                    table = pa.concat_tables(waiting).combine_chunks()
                    end = ready if batch is None or not group else ready // group * group
                    writer.write_table(table.slice(0, end), row_group_size=group)
                    waiting = [table.slice(end)]
            if writer is None and schema is not None:
                writer = pq.ParquetWriter(temporary, schema, **options)
            if seen and writer is not None:
                writer.add_key_value_metadata({name: str(count) for name, count in seen.items()})
        finally:
            if writer is not None:
                writer.close()
    return rows

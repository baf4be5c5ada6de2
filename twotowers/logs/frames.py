"""Frames in, frames out: pandas, polars, Arrow and DuckDB, by narwhals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.artefacts import Frame, Source

if TYPE_CHECKING:
    import pandas as pd

Native = Any
"""A frame of the caller's library: pandas, polars, or an Arrow table."""

PANDAS: Final = "pandas"
POLARS: Final = "polars"
ARROW: Final = "pyarrow"
KINDS = (PANDAS, POLARS, ARROW)
"""The libraries of frames that are given back."""


def source_of(given: Any) -> tuple[Source, str]:
    """What to read, and the library whose frames to give back.

    A path, or a frame of pandas, polars, Arrow or DuckDB. A relation of DuckDB and a lazy frame are
    read into memory. An index of pandas that has a name is a column.

    Example:
        >>> source_of(pa.table({"query": [7]}))[1], source_of("log.csv")[1]
        ('pyarrow', 'pandas')
    """
    if isinstance(given, str | Path):
        return given, PANDAS
    import narwhals as nw  # here, because files are read without it

    try:
        frame: Any = nw.from_native(given)
    except TypeError as error:
        raise InputError(
            f"a {type(given).__name__} was given",
            field="log",
            expected="a path, or a frame of pandas, polars, Arrow or DuckDB",
        ) from error
    if isinstance(frame, nw.LazyFrame):
        kind = POLARS if frame.implementation is nw.Implementation.POLARS else ARROW
        frame = frame.collect(backend=kind)
    kind = str(frame.implementation.value)
    if kind == PANDAS:
        frame = nw.from_native(_with_index(frame.to_native()))
    columns: dict[str, Any] = {}
    for name in frame.columns:
        try:
            columns[name] = frame[name].to_arrow()
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                f"cannot be read: {str(error)[:200]}",
                path="the frame",
                field=name,
                expected="columns of distinct names, with values of one type each",
            ) from error
    return Frame(_plain(pa.table(columns))), kind if kind in KINDS else ARROW


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of pandas, with the levels of its index that have a name as columns."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def _plain(table: pa.Table) -> pa.Table:
    """Categories as the values that they stand for."""
    columns = {
        name: column.combine_chunks().dictionary_decode()
        if pa.types.is_dictionary(column.type)
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def native(table: pa.Table | pd.DataFrame, kind: str) -> Native:
    """A table as a frame of a library, one of `KINDS`."""
    if not isinstance(table, pa.Table):  # pandas is not imported where nothing needs it.
        if kind == PANDAS:
            return table
        table = pa.Table.from_pandas(table, preserve_index=False)
    if kind == ARROW:
        return table
    if kind == PANDAS:
        return table.to_pandas()
    import narwhals as nw

    return nw.from_arrow(table, backend=POLARS).to_native()


def both_ends(
    names: pd.DataFrame, one: Iterable[int], other: Iterable[int], ending: str = "_with"
) -> pd.DataFrame:
    """Rows of a frame by their numbers, beside others, whose columns have an ending."""
    ends = (names.iloc[[*map(int, each)]].reset_index(drop=True) for each in (one, other))
    return next(ends).join(next(ends).add_suffix(ending))

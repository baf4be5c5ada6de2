"""Files of sessions: click logs page by page, read and written as streams.

A parquet file with a row per result page and the columns

    split       string
    query       int64 or string
    documents   list of int64 or of string, in order of position: position = index + 1
    clicks      list of bool, as long as `documents`
    user        int64 or string; optional
    position    list of int32, from 1 and rising, where positions are missing; optional
    page_count  how many equal pages a row is, if rows are not one page each; optional

Any other list column is a bias feature, with a value per document. Any other column is a lane
column, such as a parameter of the simulation. No value is missing. The file's metadata has the
reader's other counts (`seen_in`), such as clicks off the page.

The writer and the reader hold only a few row groups in memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError
from twotowers.files.blocks import ahead
from twotowers.files.columns import Rows, check_names, is_text, wrong_type
from twotowers.files.tables import opened, write_batches
from twotowers.splits import LOG

REQUIRED = ("split", "query", "documents", "clicks")
EQUAL = "page_count"
"""The column that says how many equal pages a row is."""
RESERVED = (*REQUIRED, "document", "position", "impressions", EQUAL)
"""Names of columns here and in files of cells, which no lane and no bias feature has."""
TIME = "time"
"""The column under which the time of a page is read."""
OWN = "page:"
"""Before the name of a column of the file that tells its pages apart."""
IDS = ("query", "document", "documents", "user")
"""Columns that hold whole numbers or text."""
EMPTY = pa.schema(
    [
        ("split", pa.string()),
        ("query", pa.int64()),
        ("documents", pa.list_(pa.int64())),
        ("clicks", pa.list_(pa.bool_())),
    ]
)
"""The columns of a log without pages."""

GROUP = 50_000
"""Pages of a row group. A reader holds at least one group in memory."""
BATCH = 20_000
"""Pages that a reader yields at a time."""


@dataclass
class Stream:
    """A log while it is read, by batches of pages, which can be taken once.

    `seen` counts what else was seen, and `ordered` says whether pages are in the order of time;
    both are known after the last batch.
    """

    batches: Iterable[pa.RecordBatch]
    seen: dict[str, int] = field(default_factory=dict)
    ordered: bool = False


class Unsorted(Exception):
    """Rows of a page are apart, or those of several pages together: they have to be sorted."""


def write_sessions(
    path: str | Path, batches: Iterable[pa.RecordBatch | pa.Table], seen: Mapping | None = None
) -> int:
    """Write pages, all or nothing; the number written. Batches are consumed one at a time.

    The file has the same bytes however the pages are cut into batches. They have the columns that
    the module describes, all the same. Numbers of `seen`, for the metadata, are read after the last
    batch.
    """
    return write_batches(path, _conformed(batches, path), group=GROUP, seen=seen, schema=EMPTY)


def _conformed(batches: Iterable[pa.RecordBatch | pa.Table], path) -> Iterator[pa.RecordBatch]:
    """Batches in the types that the module describes."""
    row = 0
    for batch in batches:
        parts = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
        for part in parts or [empty(batch.schema)]:
            yield conform(part, path, row)
            row += len(part)


def described(schema: pa.Schema) -> str:
    """Names and types of the columns, in words."""
    return ", ".join(f"{each.name} ({each.type})" for each in schema)


def read_sessions(path: str | Path, *, batch: int = BATCH) -> Iterator[pa.RecordBatch]:
    """Read pages, at most `batch` at a time, with the columns and types that the module describes.

    The file may be another program's, with other kinds of integers, text and lists. An empty log
    yields one empty batch.
    """
    yield from ahead(_read(path, batch))


def _read(path: str | Path, batch: int) -> Iterator[pa.RecordBatch]:
    with opened(path) as file:
        none = [] if file.metadata.num_rows else [empty(file.schema_arrow)]
        yield from _conformed(chain(file.iter_batches(batch_size=batch), none), path)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """An empty batch with these columns."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def page_batches(pages: Iterable[tuple], further: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Single pages (query, documents, clicks, values of further columns) -> batches."""
    pages = iter(pages)
    while some := list(islice(pages, BATCH)):
        query, documents, clicks, *more = zip(*some, strict=True)
        columns = [pa.repeat(LOG, len(some)), pa.array(query), pa.array(documents)]
        columns += [pa.array(clicks, pa.list_(pa.bool_()))]
        columns += [pa.array(each) for _, each in zip(further, more, strict=False)]
        yield pa.RecordBatch.from_arrays(columns, names=[*REQUIRED, *further])


def page_batch(
    query: np.ndarray,
    documents: np.ndarray,
    clicks: np.ndarray,
    split: str,
    where: np.ndarray | None = None,
    lanes: Mapping[str, str | float] | None = None,
) -> pa.RecordBatch:
    """Pages as arrays -> a batch; `where` is False behind the end of a page, None if all are full.

    Lane columns have one value each.
    """
    where = np.ones(documents.shape, bool) if where is None else where
    offsets = pa.array(np.append(0, np.cumsum(where.sum(1))), pa.int32())
    lists = [
        pa.ListArray.from_arrays(offsets, pa.array(each[where])) for each in (documents, clicks)
    ]
    own = [pa.repeat(value, len(query)) for value in (lanes or {}).values()]
    columns = [*own, pa.repeat(split, len(query)), pa.array(query), *lists]
    return pa.RecordBatch.from_arrays(columns, names=[*(lanes or {}), *REQUIRED])


def seen_in(path: str | Path) -> dict[str, int]:
    """The numbers in a file's metadata: the other counts of its reader."""
    numbers = {}
    with opened(path) as file:
        for name, value in (file.metadata.metadata or {}).items():
            with suppress(ValueError):
                numbers[name.decode()] = int(value)
    return numbers


def seen_lines(seen: Mapping[str, int]) -> Iterator[str]:
    """What a reader counted in words, a line each."""
    for name, count in seen.items():
        yield f"{name.replace('_', ' ')}: {count:,}"


def bias_features(schema: pa.Schema) -> list[str]:
    """The columns that hold a value per document."""
    return [
        each.name for each in schema if _is_list(each.type) and each.name not in {*REQUIRED, "user"}
    ]


# The schema


def check_free(names: Sequence[str], taken: Iterable[str] = RESERVED) -> None:
    """Raise InputError for a lane or bias feature with the name of another column, or two of it."""
    for name in names:
        if name in taken or names.count(name) > 1:
            raise InputError(
                "is the name of another column" if name in taken else "is named twice",
                field=name,
                expected="names of their own for lanes and bias features; `columns` gives them",
            )


def check_columns(schema: pa.Schema, path: str | Path | None) -> None:
    """Raise InputError for missing, repeated or nested columns, and for wrong types."""
    check_names([*REQUIRED, *schema.names], schema.names, path)
    for each in schema:
        is_list, wanted = _is_list(each.type), each.name in ("documents", "clicks")
        inner = each.type.value_type if is_list else each.type
        if each.name in {*REQUIRED, "user"} and is_list != wanted:
            raise wrong_type(
                each.type, each.name, path, "a list per page" if wanted else "a value per page"
            )
        kind = inner.value_type if pa.types.is_dictionary(inner) else inner
        if pa.types.is_nested(kind):
            raise wrong_type(each.type, each.name, path, "plain values, or lists of them")
        if each.name in IDS and not (pa.types.is_integer(kind) or is_text(kind)):
            raise wrong_type(each.type, each.name, path, "whole numbers or text")
        if each.name == "split" and not is_text(kind):
            raise wrong_type(each.type, each.name, path, "text")
        if each.name == "clicks" and not (pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
            raise wrong_type(each.type, each.name, path, "a list of 0 and 1 per page")


def conform(batch: pa.RecordBatch, path: str | Path | None, row: int = 0) -> pa.RecordBatch:
    """The pages in the types that the module describes; without a split they are of `LOG`.

    Every page passes this check when it is read or written.
    """
    if "split" not in batch.schema.names:
        batch = batch.append_column("split", pa.repeat(LOG, len(batch)))
    check_columns(batch.schema, path)
    rows = Rows(path, row)
    columns = {each.name: _column(batch[each.name], each.name, rows) for each in batch.schema}
    lengths, inside = columns["documents"].value_lengths(), bias_features(batch.schema)
    for name in ("clicks", *inside):
        found = columns[name].value_lengths()
        rows.check(
            pc.equal(found, lengths),
            name,
            lambda at, found=found: f"{found[at]} values and {lengths[at]} documents",
            "a value per document",
        )
    lanes = [name for name in columns if name not in {*REQUIRED, "user", *inside}]
    others = [name for name in columns if name not in {*REQUIRED, *lanes}]
    return pa.RecordBatch.from_pydict(
        {name: columns[name] for name in (*lanes, *REQUIRED, *others)}
    )


def _column(column: pa.Array, name: str, rows: Rows) -> pa.Array:
    """A column in the type that the module describes, after a check for missing values."""
    rows.present(column, name)
    if not _is_list(column.type):
        return plain_values(column, name, rows)
    inside = rows.inside(column)
    values = plain_values(inside.present(column.flatten(), name), name, inside)
    if name == "clicks" and not pa.types.is_boolean(values.type):
        good = pc.is_in(values, value_set=pa.array([0, 1], values.type))
        inside.check(good, name, lambda at: f"{values[at]} was found", "0 or 1")
        values = values.cast(pa.bool_())
    offsets = np.append(0, np.cumsum(column.value_lengths()))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def plain_values(values: pa.Array, name: str, rows: Rows) -> pa.Array:
    """Text as strings, integer ids as int64, other values unchanged."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if is_text(values.type):
        try:
            values = values.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise InputError(f"cannot be read: {error}", path=rows.path, field=name) from error
        if name in IDS:
            there = pc.not_equal(values, "")
            rows.check(there, name, lambda at: "a value is missing", "a value")
        return values
    if name in IDS and values.type != pa.int64():
        try:
            return values.cast(pa.int64())
        except pa.ArrowInvalid:
            small = pc.less_equal(values, pa.scalar(2**63 - 1, values.type))
            expected = "a whole number below 2^63, or text"
            rows.check(small, name, lambda at: f"{values[at]} was found", expected)
    return values


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )

"""The artefact "cells": click counts on disk, one row group per lane and split.

A row is a cell that was shown at least once. Readers that know nothing of this module see an
ordinary table with the columns split, the lane columns (for example strength and temperature),
query, document, position, impressions, clicks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import mask
from twotowers.files.tables import check_no_nulls, check_types, opened
from twotowers.logs.counts import Cells, Counts, Rows, lay_out

CELL_TYPES = {
    "query": pa.int64(),
    "document": pa.int32(),
    "position": pa.int32(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
}
CELL = list(CELL_TYPES)
SPLIT = "split"
# Read and written as its few values: millions of strings would take half of the time.
TEXT = pa.dictionary(pa.int32(), pa.string())

Lane = Mapping[str, float | str]
"""One value per lane column, in the order of the columns."""


def cells_schema(lane: Lane) -> pa.Schema:
    """The columns of a file whose lanes have these names and kinds of values.

    Columns are declared to hold no nulls: such a file is written a quarter faster, and read twice
    as fast.
    """
    return pa.schema([pa.field(*column, nullable=False) for column in _types(lane).items()])


def _types(lane: Lane) -> dict[str, pa.DataType]:
    kinds = {name: TEXT if isinstance(value, str) else pa.float64() for name, value in lane.items()}
    return {SPLIT: TEXT, **kinds, **CELL_TYPES}


@dataclass(frozen=True)
class Pairs:
    """The query-document pairs of one split, in the order of its lists.

    Attributes:
        query: [rows] query ids; rows of one query are contiguous.
        document: [rows] document numbers.
        offsets: [queries + 1] row offsets of the queries.
    """

    query: np.ndarray
    document: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """[queries] documents of each query."""
        return np.diff(self.offsets)


def pair_keys(query: np.ndarray, document: np.ndarray) -> np.ndarray:
    """[rows] int64, a number for each pair of a query id and a document number below 2^24."""
    return query.astype(np.int64) << 24 | document


@dataclass(frozen=True)
class LaneLog:
    """The counts of one split in one lane."""

    split: str
    lane: Lane
    counts: Counts | Cells


def write_logs(path: str | Path, logs: Iterable[LaneLog], pairs: dict[str, Pairs]) -> None:
    """Write the logs of all lanes and splits.

    Args:
        path: the parquet file.
        logs: one per lane and split, one or more; consumed one at a time.
        pairs: the pairs of each split, against which counts are laid out.
    """
    logs = iter(logs)
    first = next(logs)
    schema = cells_schema(first.lane)
    text = [field.name for field in schema if field.type == TEXT]
    with (
        atomic(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema,
            # Without this, other readers would see categories in `split` instead of text.
            store_schema=False,
            compression="lz4",
            use_dictionary=text,
            write_statistics=[SPLIT, *first.lane],
            # Small numbers without an order; the other columns repeat themselves, as lz4 sees.
            column_encoding=dict.fromkeys(CELL[3:], "DELTA_BINARY_PACKED"),
        ) as writer,
    ):
        for log in chain([first], logs):
            writer.write_table(_table(log, pairs[log.split], schema), row_group_size=2**26)


def _table(log: LaneLog, pairs: Pairs, schema: pa.Schema) -> pa.Table:
    columns = (_dense_columns if isinstance(log.counts, Counts) else _columns)(log.counts, pairs)
    rows = len(columns[0])
    lane = [_repeated(value, rows) for value in (log.split, *log.lane.values())]
    return pa.Table.from_arrays([*lane, *columns], schema=schema)


def _repeated(value: float | str, rows: int) -> pa.Array:
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [value])
    return pa.repeat(pa.scalar(float(value)), rows)


def _dense_columns(counts: Counts, pairs: Pairs) -> list[np.ndarray]:
    shown = counts.impressions > 0
    length = shown.shape[-1]
    cells = shown.sum(-1)[mask(pairs.lengths, length)]  # of each pair
    return [
        np.repeat(pairs.query, cells),
        np.repeat(pairs.document, cells),
        np.broadcast_to(np.arange(1, length + 1, dtype=np.int32), shown.shape)[shown],
        counts.impressions[shown],
        counts.clicks[shown],
    ]


def _columns(cells: Cells, pairs: Pairs) -> list[np.ndarray]:
    pair = pairs.offsets[cells.query] + cells.document
    return [
        pairs.query[pair],
        pairs.document[pair],
        (cells.position + 1).astype(np.int32),
        cells.impressions,
        cells.clicks,
    ]


def read_logs(
    path: str | Path, lanes: Sequence[Lane], *, split: str, pairs: Pairs, length: int
) -> Counts | Rows:
    """The counts of the given lanes.

    Args:
        path: the parquet file.
        lanes: the value of every lane column, for each lane wanted.
        split: the split wanted.
        pairs: the pairs of that split.
        length: documents of the longest list, and positions.

    Returns:
        see `twotowers.logs.counts.lay_out`; [lanes, queries, ...].

    Raises:
        InputError: the file cannot be read or has other columns, a lane is missing, a row
            names a pair or position that is not there, or its numbers cannot be counts.
    """
    names = [SPLIT, *lanes[0]]
    text = [name for name, value in {SPLIT: split, **lanes[0]}.items() if isinstance(value, str)]
    with opened(path, dictionaries=text) as file:
        check_types(file.schema_arrow, _types(lanes[0]), path)
        groups = {_lane(file, group, names, path): group for group in range(file.num_row_groups)}
        if len(groups) < file.num_row_groups:
            raise InputError("a lane is spread over several row groups", path=path)
        chosen = []
        for lane in lanes:
            values = (split, *lane.values())
            if values not in groups:
                words = ", ".join(f"{n} {v}" for n, v in zip(names, values, strict=True))
                raise InputError(f"no lane with {words}", path=path, expected=_listed(groups))
            chosen.append((values, groups[values]))
        lookup = _Lookup(pairs, length, path)
        logs = [_checked(_rows(file, group, names, lane, path), lookup) for lane, group in chosen]
    return lay_out(logs, len(pairs.lengths), length, path=path)


def _checked(table: pa.Table, lookup: _Lookup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of one lane: the number of each, how often it was shown, and its clicks."""
    cell = lookup.cells(*(table[name].to_numpy() for name in CELL[:3]))
    shown, clicked = table["impressions"].to_numpy(), table["clicks"].to_numpy()
    # Before they are narrowed to a type in which they might wrap around.
    if (clicked < 0).any():
        raise InputError("negative clicks", path=lookup.path, field="clicks")
    if (clicked > shown).any():
        raise InputError("more clicks than impressions", path=lookup.path, field="clicks")
    return cell, shown, clicked


def _lane(file: pq.ParquetFile, group: int, names: list[str], path: str | Path) -> tuple:
    """The lane that a row group's first row belongs to."""
    # Not from the file's statistics: Arrow ends the process where those are damaged.
    row = next(file.iter_batches(batch_size=1, row_groups=[group], columns=names), None)
    found = {name: row[name][0].as_py() for name in names} if row else {}
    lane = tuple(found.get(name) for name in names)
    if None in lane:
        raise InputError(f"row group {group} holds no lane", path=path)
    return lane


def _listed(groups: Iterable[tuple]) -> str:
    return f"one of {sorted(groups, key=str)}"


def _rows(
    file: pq.ParquetFile, group: int, names: list[str], lane: tuple, path: str | Path
) -> pa.Table:
    """The cells of a row group, all of which must be of the lane."""
    table = check_no_nulls(file.read_row_group(group, [*names, *CELL]), path)
    for name, value in zip(names, lane, strict=True):
        if not _all_are(table[name], value):
            raise InputError(
                f"row group {group} holds more than one lane",
                path=path,
                field=name,
                expected=f"one row group per {', '.join(names)}",
            )
    return table.select(CELL)


def _all_are(column: pa.ChunkedArray, value: str | float) -> bool:
    if pa.types.is_dictionary(column.type):
        # Text is compared once a distinct value, not once a row.
        return all(
            (np.asarray(chunk.dictionary) == value)[np.asarray(chunk.indices)].all()
            for chunk in column.chunks
        )
    return bool((column.to_numpy() == value).all())


class _Lookup:
    """Finds the dense cell of (query, document, position) rows."""

    def __init__(self, pairs: Pairs, length: int, path: str | Path):
        query = np.repeat(np.arange(len(pairs.lengths)), pairs.lengths)
        rank = np.arange(len(pairs.query)) - pairs.offsets[query]
        key = pair_keys(pairs.query, pairs.document)
        self.order = np.argsort(key)
        self.key, self.first_cell = key[self.order], ((query * length + rank) * length)[self.order]
        self.shape = (len(pairs.lengths), length, length)
        self.length, self.path = length, path

    def cells(self, query, document, position) -> np.ndarray:
        """[rows] flat indices into [queries, documents, positions]."""
        # Rows of one pair stand together, so pairs are looked up once a run, not once a row.
        changes = (query[1:] != query[:-1]) | (document[1:] != document[:-1])
        starts = np.flatnonzero(np.concatenate([[True], changes])[: len(query)])
        key = pair_keys(query[starts], document[starts])
        found = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        unknown = self.key[found] != key
        if unknown.any():
            row = starts[unknown][0]
            raise InputError(
                f"query {query[row]}, document {document[row]} is not in the rankings",
                path=self.path,
                field="document",
            )
        if len(position) and not (position.min() >= 1 and position.max() <= self.length):
            raise InputError(
                f"positions reach from {position.min()} to {position.max()}",
                path=self.path,
                field="position",
                expected=f"1 to {self.length}",
            )
        first = np.repeat(self.first_cell[found], np.diff(starts, append=len(query)))
        return first + (position - 1)

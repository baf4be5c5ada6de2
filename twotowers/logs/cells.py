"""Files of cells: click counts, a row group per lane and split.

A row is a cell that was shown at least once. For other readers the file is an ordinary table with
the columns split, lane columns (such as strength and temperature), query, document, position,
impressions, clicks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.files.artefacts import atomic
from twotowers.files.tables import opened
from twotowers.logs.counts import Cells, Counts, lay_out

CELL_TYPES = {
    "query": pa.int64(),
    "document": pa.int32(),
    "position": pa.int32(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
}
CELL = list(CELL_TYPES)
SPLIT = "split"
# Text has few distinct values. Reading and writing millions of strings would take half the time.
TEXT = pa.dictionary(pa.int32(), pa.string())

Lane = Mapping[str, float | str]
"""A value per lane column, in the order of the columns."""


def cells_schema(lane: Lane) -> pa.Schema:
    """The columns of a file, with lane columns like those of `lane`.

    Non-nullable columns write a quarter faster, and read twice as fast.
    """
    return pa.schema([pa.field(*column, nullable=False) for column in _types(lane).items()])


def _types(lane: Lane) -> dict[str, pa.DataType]:
    kinds = {name: TEXT if isinstance(value, str) else pa.float64() for name, value in lane.items()}
    return {SPLIT: TEXT, **kinds, **CELL_TYPES}


@dataclass(frozen=True)
class Pairs:
    """The query-document pairs of one split, a row each, in the order of its lists.

    `offsets` [queries + 1] has the row at which each query, whose rows are contiguous, begins.
    """

    query: np.ndarray
    document: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """[queries] documents of each query."""
        return np.diff(self.offsets)


class Lookup:
    """The pairs of some ids: [pairs] index of each one's query, and of its document on the list."""

    def __init__(self, pairs: Pairs):
        self.query = np.repeat(np.arange(len(pairs.lengths)), pairs.lengths)
        self.document = np.arange(len(self.query)) - pairs.offsets[self.query]
        key = _keys(pairs.query, pairs.document)
        self._order = np.argsort(key)
        self._key = key[self._order]

    def pairs(self, query: np.ndarray, document: np.ndarray) -> np.ndarray:
        """[rows] numbers of the pairs with these ids."""
        return self._order[np.searchsorted(self._key, _keys(query, document))]


def _keys(query: np.ndarray, document: np.ndarray) -> np.ndarray:
    """[rows] int64, a key for each pair of a query id and a document number below 2^24."""
    return query.astype(np.int64) << 24 | document


@dataclass(frozen=True)
class LaneLog:
    """The counts of one split in one lane."""

    split: str
    lane: Lane
    counts: Cells


def write_logs(path: str | Path, logs: Iterable[LaneLog], pairs: dict[str, Pairs]) -> None:
    """Write the logs of all lanes and splits, at least one, which are consumed one at a time."""
    logs = iter(logs)
    first = next(logs)
    schema = cells_schema(first.lane)
    text = [field.name for field in schema if field.type == TEXT]
    with (
        atomic(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema,
            # With the Arrow schema, other readers would see `split` as categories, not as text.
            store_schema=False,
            compression="lz4",
            use_dictionary=text,
            write_statistics=[SPLIT, *first.lane],
            # lz4 compresses all columns well but these: small numbers in no order.
            column_encoding=dict.fromkeys(CELL[3:], "DELTA_BINARY_PACKED"),
        ) as writer,
    ):
        for log in chain([first], logs):
            writer.write_table(_table(log, pairs[log.split], schema), row_group_size=2**26)


def _table(log: LaneLog, pairs: Pairs, schema: pa.Schema) -> pa.Table:
    columns = _columns(log.counts, pairs)
    rows = len(columns[0])
    lane = [_repeated(value, rows) for value in (log.split, *log.lane.values())]
    return pa.Table.from_arrays([*lane, *columns], schema=schema)


def _repeated(value: float | str, rows: int) -> pa.Array:
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [value])
    return pa.repeat(pa.scalar(float(value)), rows)


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
) -> Counts:
    """The counts of some lanes of a split, [lanes, queries, ...] (`twotowers.logs.counts.lay_out`).

    Lists and pages have at most `length` documents.
    """
    logs = _read_lanes(path, lanes, split, pairs, length)
    return lay_out(logs, len(pairs.lengths), length)


def _read_lanes(path, lanes, split: str, pairs: Pairs, length: int) -> Iterator[tuple]:
    """Cell numbers, impressions and clicks of one lane after the other."""
    names = [SPLIT, *lanes[0]]
    text = [name for name, value in {SPLIT: split, **lanes[0]}.items() if isinstance(value, str)]
    with opened(path, dictionaries=text) as file:
        groups = {_lane(file, group, len(names)): group for group in range(file.num_row_groups)}
        lookup = Lookup(pairs)
        first = (lookup.query * length + lookup.document) * length
        for lane in lanes:
            values = (split, *lane.values())
            query, document, position, shown, clicked = (
                column.to_numpy() for column in file.read_row_group(groups[values], CELL).columns
            )
            yield first[lookup.pairs(query, document)] + (position - 1), shown, clicked


def _lane(file: pq.ParquetFile, group: int, columns: int) -> tuple:
    """The split and lane of a row group, in its first columns: all of its rows have them."""
    group = file.metadata.row_group(group)
    return tuple(group.column(number).statistics.min for number in range(columns))

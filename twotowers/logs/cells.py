"""Click counts on disk: one parquet file per simulated log, one row group per lane and split.

A row is a cell that was shown at least once. Readers that know nothing of this module
see an ordinary table with the columns split, strength, temperature, query, document,
position, impressions, clicks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import mask
from twotowers.files.tables import check_no_nulls, check_types, opened
from twotowers.logs.simulation import Counts

TYPES = {
    # Read and written as its few values: millions of strings would take half of the time.
    "split": pa.dictionary(pa.int32(), pa.string()),
    "strength": pa.float64(),
    "temperature": pa.float64(),
    "query": pa.int64(),
    "document": pa.int32(),
    "position": pa.int32(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
}
# None is ever missing; a file that says so is written in 3/4 of the time and read in half.
SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in TYPES.items()])

LANE, CELLS = SCHEMA.names[:3], SCHEMA.names[3:]


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


@dataclass(frozen=True)
class LaneLog:
    """The counts of one split under one policy."""

    split: str
    strength: float
    temperature: float
    counts: Counts


def write_logs(path: str | Path, logs: Iterable[LaneLog], pairs: dict[str, Pairs]) -> None:
    """Write the logs of all lanes and splits.

    Args:
        path: the parquet file.
        logs: one per lane and split; consumed one at a time.
        pairs: the pairs of each split, against which counts are laid out.
    """
    with (
        atomic(path) as temporary,
        pq.ParquetWriter(
            temporary,
            SCHEMA,
            # Else other readers would see categories in `split`, not text.
            store_schema=False,
            compression="lz4",
            use_dictionary=["split"],
            write_statistics=LANE,
            # Small numbers without an order; the other columns repeat themselves, as lz4 sees.
            column_encoding=dict.fromkeys(CELLS[3:], "DELTA_BINARY_PACKED"),
        ) as writer,
    ):
        for log in logs:
            writer.write_table(_table(log, pairs[log.split]), row_group_size=2**26)


def _table(log: LaneLog, pairs: Pairs) -> pa.Table:
    impressions, clicks = log.counts.impressions, log.counts.clicks
    shown = impressions > 0
    length = shown.shape[-1]
    cells = shown.sum(-1)[mask(pairs.lengths, length)]  # of each pair
    rows = cells.sum()
    columns = [
        pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [log.split]),
        pa.repeat(pa.scalar(float(log.strength)), rows),
        pa.repeat(pa.scalar(float(log.temperature)), rows),
        np.repeat(pairs.query, cells),
        np.repeat(pairs.document, cells),
        np.broadcast_to(np.arange(1, length + 1, dtype=np.int32), shown.shape)[shown],
        impressions[shown],
        clicks[shown],
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def read_logs(
    path: str | Path,
    lanes: list[tuple[float, float]],
    *,
    split: str,
    pairs: Pairs,
    length: int,
) -> Counts:
    """The counts of the given lanes, laid out densely.

    Args:
        path: the parquet file.
        lanes: (strength, temperature) of each lane wanted.
        split: the split wanted.
        pairs: the pairs of that split.
        length: documents per list and positions per page of the dense layout.

    Returns:
        Counts with arrays [lanes, queries, length, length], in the smallest unsigned type
        that holds them.

    Raises:
        InputError: the file cannot be read or has other columns, a lane is missing, a row
            names a pair or position that is not there, or its numbers cannot be counts.
    """
    with opened(path, dictionaries=["split"]) as file:
        check_types(file.schema_arrow, TYPES, path)
        groups = {_lane(file, group, path): group for group in range(file.num_row_groups)}
        if len(groups) < file.num_row_groups:
            raise InputError("a lane is spread over several row groups", path=path)
        chosen = []
        for lane in lanes:
            if (split, *lane) not in groups:
                raise InputError(
                    f"no lane with split {split}, strength {lane[0]}, temperature {lane[1]}",
                    path=path,
                    expected=f"one of {sorted(groups)}",
                )
            chosen.append(groups[split, *lane])
        lookup = _Lookup(pairs, length, path)
        counts = [
            _dense(_rows(file, group, (split, *lane), path), lookup)
            for lane, group in zip(lanes, chosen, strict=True)
        ]
    # Each lane has the type that it needs; together they get the widest of these.
    return Counts(*(np.stack(arrays) for arrays in zip(*counts, strict=True)))


def _dense(table: pa.Table, lookup: _Lookup) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks of one lane, [queries, documents, positions]."""
    cell = lookup.cells(*(table[name].to_numpy() for name in CELLS[:3]))
    shown, clicked = table["impressions"].to_numpy(), table["clicks"].to_numpy()
    _check_counts(shown, clicked, lookup.path)
    kind = np.min_scalar_type(shown.max(initial=0))
    impressions, clicks = (np.zeros(lookup.shape, kind) for _ in range(2))
    impressions.reshape(-1)[cell] = shown.astype(kind)
    clicks.reshape(-1)[cell] = clicked.astype(kind)
    if impressions.sum(dtype=np.int64) != shown.sum():
        raise InputError(
            "a document is listed more than once at a position", path=lookup.path, field="position"
        )
    return impressions, clicks


def _check_counts(impressions: np.ndarray, clicks: np.ndarray, path: str | Path) -> None:
    # Before they are narrowed to a type in which they might wrap around.
    if (clicks < 0).any():
        raise InputError("negative clicks", path=path, field="clicks")
    if (clicks > impressions).any():
        raise InputError("more clicks than impressions", path=path, field="clicks")


def _lane(file: pq.ParquetFile, group: int, path: str | Path) -> tuple[str, float, float]:
    """The lane that a row group's first row belongs to."""
    # Not from the file's statistics: Arrow ends the process where those are damaged.
    row = next(file.iter_batches(batch_size=1, row_groups=[group], columns=LANE), None)
    lane = tuple(column[0].as_py() for column in row.columns) if row else (None,)
    if None in lane:
        raise InputError(f"row group {group} holds no lane", path=path)
    return lane


def _rows(file: pq.ParquetFile, group: int, lane: tuple, path: str | Path) -> pa.Table:
    """The cells of a row group, all of which must be of the lane."""
    table = check_no_nulls(file.read_row_group(group, SCHEMA.names), path)
    for name, value in zip(LANE, lane, strict=True):
        if not _all_are(table[name], value):
            raise InputError(
                f"row group {group} holds more than one lane",
                path=path,
                field=name,
                expected="one row group per split, strength and temperature",
            )
    return table.select(CELLS)


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
        key = self._key(pairs.query, pairs.document)
        self.order = np.argsort(key)
        self.key, self.first_cell = key[self.order], ((query * length + rank) * length)[self.order]
        self.shape = (len(pairs.lengths), length, length)
        self.length, self.path = length, path

    @staticmethod
    def _key(query: np.ndarray, document: np.ndarray) -> np.ndarray:
        return query.astype(np.int64) << 24 | document

    def cells(self, query, document, position) -> np.ndarray:
        """[rows] flat indices into [queries, documents, positions]."""
        # Rows of one pair stand together, so pairs are looked up once a run, not once a row.
        changes = (query[1:] != query[:-1]) | (document[1:] != document[:-1])
        starts = np.flatnonzero(np.concatenate([[True], changes])[: len(query)])
        key = self._key(query[starts], document[starts])
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

"""Click logs in Parquet that are nearly valid. Types, nulls, names, values or bytes are wrong."""

import io
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutations import mutate

LOG = pa.table(
    {
        "query": [1, 1, 1, 2],
        "document": [5, 5, 6, 5],
        "position": pa.array([1, 2, 3, 3], pa.int32()),
        "v1": pa.array(["a", "b", "a", "a"]).dictionary_encode(),
        "impressions": [10, 7, 4, 1],
        "clicks": [3, 0, 4, 1],
    }
)

TYPES = (
    *(pa.bool_(), pa.int8(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.decimal128(12, 3), pa.date32(), pa.null()),
    *(pa.timestamp("ns", "Europe/Paris"), pa.duration("s"), pa.list_(pa.int64()), pa.time64("ns")),
    *(pa.list_(pa.float32(), 0), pa.struct({"a": pa.int8()}), pa.map_(pa.string(), pa.int8())),
    pa.dictionary(pa.int32(), pa.string()),
)
VALUES = (
    *(None, 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 1e300, float("nan"), float("inf"), "", "train"),
)


def drawn_from(table: pa.Table) -> Callable[[Random], bytes]:
    """Draw files near that of the table."""
    whole = written(table)
    words = [b"PAR1", b"pandas", b"ARROW:schema", bytes(8), b"\xff" * 8]

    def draw(rng: Random) -> bytes:
        damaged = rng.random() < 0.6
        return mutate(whole, [whole], words, rng) if damaged else written(changed(table, rng))

    return draw


def written(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def changed(table: pa.Table, rng: Random) -> pa.Table:
    """A table with up to three columns dropped, doubled, renamed, retyped or revalued."""
    for _ in range(rng.randint(0, 3)):
        if table.num_columns == 0:
            break
        at = rng.randrange(table.num_columns)
        name, kind = table.column_names[at], table.field(at).type
        values = table.column(at).to_pylist()
        change = rng.randrange(4)
        if change == 0:
            table = table.remove_column(at)
            continue
        if change == 1:
            name = rng.choice(["", "x" * 300, "a.b", "é\n", *table.column_names])
        elif change == 2:
            kind = rng.choice(TYPES)
        else:
            others = [*VALUES, *values]
            values = [rng.choice(others) if rng.random() < 0.5 else value for value in values]
        try:
            column = pa.array(values).cast(kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            column = pa.nulls(len(table), kind)
        table = table.set_column(at, name, column)
    return table if rng.random() < 0.9 else table.slice(0, rng.randint(0, 1))

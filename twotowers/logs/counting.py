"""The table of counts, the same for click logs from every source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Names:
    """A column of names, as numbers.

    Attributes:
        code: [rows] integers, indices of `names`.
        names: the distinct names that the numbers stand for.
    """

    code: np.ndarray
    names: Sequence[str]


def count_cells(
    query: np.ndarray,
    document: np.ndarray,
    position: np.ndarray,
    impressions: np.ndarray,
    clicks: np.ndarray,
    *,
    vertical: dict[str, Names] | None = None,
    seen: dict[str, int],
) -> pa.Table:
    """Add up impressions and clicks of equal (query, document, bias factors).

    Args:
        query: [rows] int64.
        document: [rows] int64.
        position: [rows] from 1.
        impressions: [rows].
        clicks: [rows].
        vertical: more columns of bias factors.
        seen: other counts of the source, for the table's metadata.

    Returns:
        A table, sorted by its first columns, with query, document (int64), position
        (int32), those of `vertical` (dictionaries of strings), impressions, clicks (int64).
    """
    columns = {
        "query": pa.array(query, pa.int64()),
        "document": pa.array(document, pa.int64()),
        "position": pa.array(position, pa.int32()),
    }
    dictionaries = {}
    for name, column in (vertical or {}).items():
        used, code = np.unique(column.code, return_inverse=True)
        # Python's strings: in a NumPy array each would take as much room as the longest.
        order = np.array(
            sorted(range(len(used)), key=lambda number: column.names[used[number]]), int
        )
        dictionaries[name] = pa.array([column.names[used[at]] for at in order], pa.string())
        columns[name] = pa.array(np.argsort(order)[code], pa.int32())
    keys = list(columns)
    columns |= {"impressions": pa.array(impressions, pa.int64())}
    columns |= {"clicks": pa.array(clicks, pa.int64())}
    table = (
        pa.table(columns)
        .group_by(keys, use_threads=False)
        .aggregate([("impressions", "sum"), ("clicks", "sum")])
        .rename_columns([*keys, "impressions", "clicks"])
        .sort_by([(key, "ascending") for key in keys])
        .combine_chunks()
    )
    for name, dictionary in dictionaries.items():
        place = table.schema.get_field_index(name)
        chunks = [pa.DictionaryArray.from_arrays(codes, dictionary) for codes in table[name].chunks]
        column = pa.chunked_array(chunks, pa.dictionary(pa.int32(), pa.string()))
        table = table.set_column(place, name, column)
    return table.replace_schema_metadata({name: str(count) for name, count in seen.items()})


def seen(log: pa.Table) -> dict[str, int]:
    """What the reader counted beside clicks, such as pages left out, from the log's metadata."""
    return {name.decode(): int(count) for name, count in (log.schema.metadata or {}).items()}

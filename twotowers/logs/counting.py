"""The table of counts, the same for click logs from every source."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def count_cells(
    query: np.ndarray,
    document: np.ndarray,
    position: np.ndarray,
    impressions: np.ndarray,
    clicks: np.ndarray,
    *,
    vertical: dict[str, pa.Array] | None = None,
    seen: dict[str, int],
) -> pa.Table:
    """Add up impressions and clicks of equal (query, document, bias factors).

    Args:
        query: [rows] int64.
        document: [rows] int64.
        position: [rows] from 1.
        impressions: [rows].
        clicks: [rows].
        vertical: more columns of bias factors, text.
        seen: other counts of the source, for the table's metadata.

    Returns:
        A table, sorted by its first columns, with query, document (int64), position
        (int32), those of `vertical`, impressions, clicks (int64).
    """
    columns = {
        "query": pa.array(query, pa.int64()),
        "document": pa.array(document, pa.int64()),
        "position": pa.array(position, pa.int32()),
        **(vertical or {}),
    }
    counts = {
        "impressions": pa.array(impressions, pa.int64()),
        "clicks": pa.array(clicks, pa.int64()),
    }
    table = (
        pa.table(columns | counts)
        .group_by(list(columns), use_threads=False)
        .aggregate([(name, "sum") for name in counts])
        .rename_columns([*columns, *counts])
        .sort_by([(key, "ascending") for key in columns])
    )
    return table.replace_schema_metadata({name: str(count) for name, count in seen.items()})


def seen(log: pa.Table) -> dict[str, int]:
    """What the reader counted beside clicks, such as pages left out, from the log's metadata."""
    return {name.decode(): int(count) for name, count in (log.schema.metadata or {}).items()}

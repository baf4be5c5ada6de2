"""Reader of counted logs: query, document, position, impressions, clicks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.artefacts import Source, files_of
from twotowers.files.batches import column_names, read_batches
from twotowers.files.columns import MOST, Rows, check_ids
from twotowers.logs.layouts import named
from twotowers.logs.sessions import IDS, Stream, plain_values
from twotowers.splits import LOG

LAYOUT = "a row per query, document and position, counted"
COUNTED = True

REQUIRED = ("query", "document", "position", "clicks")
FEW = 20
"""Rows that tell whether each pair has one."""
NUMBERS = {"position": (1, 2**31 - 1), "impressions": (0, MOST), "clicks": (0, MOST)}
"""Column of numbers -> the lowest and the highest."""


def read(
    path: Source, *, columns: Mapping[str, str] | None = None, bias: Sequence[str] = ()
) -> Stream:
    """Read csv, parquet or feather files, a row per cell, or a row per impression.

    Without impressions, a row is one impression, and has one click or none.

    Returns:
        Batches with split, query, document (int64 or string), position (int32),
        bias features, impressions, clicks (int64). A cell may occur twice. Cells that were never
        shown are left out. Impressions and clicks are counted.
    """
    named_in = {
        file: named(file, REQUIRED, columns, bias, ("impressions", "split"))
        for file in files_of(path)
    }
    seen = {"impressions": 0, "clicks": 0}
    batches = (_batches(file, names, bias, seen) for file, names in named_in.items())
    return Stream(chain.from_iterable(batches), seen)


def _batches(path, names, bias, seen) -> Iterator[pa.RecordBatch]:
    order = ["split", "query", "document", "position", *bias, "impressions", "clicks"]
    before = 0
    with_rate = "ctr" in map(str.lower, column_names(path))
    for batch in read_batches(path, list(names.values())):
        rows = Rows(path, before)
        if with_rate and not before and len(batch) > FEW:
            pairs = pa.Table.from_batches([batch]).group_by([names["query"], names["document"]])
            if len(pairs.aggregate([])) == len(batch):
                raise InputError(
                    "each query and document has one row, with a click rate, so this is a mean "
                    "position, which tells nothing",
                    path=path,
                    field="position",
                    expected="impressions and clicks at each position",
                )
        columns = {ours: _key(batch[names[ours]], ours, rows) for ours in names}
        columns.setdefault("split", pa.repeat(LOG, len(batch)))
        counts = {
            name: rows.whole(batch[names[name]], name, low, high=high)
            for name, (low, high) in NUMBERS.items()
            if name in names
        }
        if "impressions" not in counts:
            counts["impressions"] = np.ones(len(batch), np.int64)
        shown, clicks = counts["impressions"], counts["clicks"]
        rows.check(
            clicks <= shown,
            "clicks",
            lambda at, shown=shown, clicks=clicks: (
                f"{clicks[at]} clicks in {shown[at]} impressions"
            ),
            "at most as many clicks as impressions"
            + ("" if "impressions" in names else "; or a column of impressions"),
        )
        columns |= {name: pa.array(values) for name, values in counts.items()}
        columns["position"] = pa.array(counts["position"].astype(np.int32))
        seen["impressions"] += int(counts["impressions"].sum())
        seen["clicks"] += int(counts["clicks"].sum())
        before += len(batch)
        cells = pa.RecordBatch.from_pydict({name: columns[name] for name in order})
        yield cells.filter(pa.array(counts["impressions"] > 0))


def _key(column: pa.Array, name: str, rows: Rows) -> pa.Array:
    """A key column: ids as int64 or text, without missing values."""
    rows.present(column, name, "a value per row")
    if name in IDS:
        check_ids(column.type, name, rows.path)
    return plain_values(column, name, rows)

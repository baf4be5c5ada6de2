"""The distinct values of some columns of any table, counted without a session or a click model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, is_table, is_text_file, read_batches
from twotowers.files.columns import Rows
from twotowers.logs.click_log import ClickLog
from twotowers.logs.counted import Counts
from twotowers.logs.frames import source_of
from twotowers.logs.layouts import Layout, parts_of, recognised

COUNTS = ("impressions", "clicks")
HINT = "; or first=0 of read_log, if they count from 0"
DECIMAL = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
"""Numbers as programs write them; 007 and NA are none."""


def any_log(given: object) -> ClickLog:
    """A log; or a table of any columns as one."""
    source, kind = source_of(given)
    path = parts_of(source)
    try:
        layout = recognised(path)
    except InputError:
        first = files_of(path)[0]
        if not is_table(first):
            raise
        column_names(first)  # A missing or damaged file is no table either.
        layout = Layout("rows", {})
    return ClickLog(path, layout, kind=kind)


def count_columns(log: ClickLog, wanted: Sequence[str]) -> tuple[pd.DataFrame, int]:
    """The distinct values of some columns of a table, with their impressions and clicks, and the
    number of its rows with impressions. The table is never held whole.

    Ids are read as they are counted: 007 stays text, and so does NA.
    """
    names, rows = _names(log, wanted), 0
    counts = [name for name in COUNTS if name in names]
    keys = [name for name in names if name not in counts]

    def shown() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        before = 0
        for batch in _batches(log, names):
            here = Rows(log.source, before)
            shown, clicks = _counts_of(batch, counts, here)
            for name in keys:
                present = pc.or_(batch[name].is_valid(), pa.array(shown == 0))
                here.check(present, name, lambda at: "a value is missing", "a value per row")
            if "position" in keys:
                here.whole(batch["position"], "position", 1, HINT)
            columns = {name: batch[name] for name in keys}
            columns |= {"impressions": shown, "clicks": clicks}
            batch = pa.record_batch([*columns.values()], names=[*columns])
            batch = batch.filter(shown > 0)
            before, rows = before + len(shown), rows + len(batch)
            yield batch

    distinct = Counts.of_batches(shown(), texts=_is_text(log))
    if not rows:
        raise InputError("the log is empty: nothing was shown", path=log.source)
    table = _with_decimals(distinct.table(), log)
    return table.drop_columns([] if "clicks" in counts else ["clicks"]).to_pandas(), rows


def _names(log: ClickLog, wanted: Sequence[str]) -> dict[str, str]:
    """Our names and the table's, of the wanted columns, impressions and clicks that there are."""
    known, present = dict(log.layout.columns), column_names(files_of(log.source)[0])
    theirs = {name: known.get(name, name) for name in [*wanted, *COUNTS]}
    readable = sorted({*present, *known} - {*COUNTS})
    for lack in (name for name in wanted if name not in readable):
        expected = nearest(lack, readable)
        raise InputError("no such column", field=lack, path=log.source, expected=expected)
    return {ours: name for ours, name in theirs.items() if ours in wanted or name in present}


def _batches(log: ClickLog, names: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Read some columns of a table, some rows at a time, under our names."""
    files, columns = files_of(log.source), list(dict.fromkeys(names.values()))
    for batch in (batch for file in files for batch in read_batches(file, columns)):
        for name, kind in zip(batch.schema.names, batch.schema.types, strict=True):
            if pa.types.is_nested(kind) or pa.types.is_float16(kind):
                raise InputError(f"has type {str(kind)[:40]}", path=log.source, field=name)
        yield pa.record_batch([batch[name] for name in names.values()], names=list(names))


def _counts_of(
    batch: pa.RecordBatch, counts: Sequence[str], rows: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks of rows. A row without impressions is one, with one click or none."""
    counted = {name: rows.whole(batch[name], name) for name in counts}
    clicks = counted.get("clicks", np.zeros(len(batch), np.int64))
    if "impressions" not in counted:
        return np.ones(len(batch), np.int64), np.minimum(clicks, 1)
    shown = counted["impressions"]
    rows.check(
        clicks <= shown,
        "clicks",
        lambda at: f"{clicks[at]} clicks on {shown[at]} impressions",
        "no more clicks than impressions",
    )
    return shown, clicks


def _is_text(log: ClickLog) -> bool:
    return is_text_file(files_of(log.source)[0])


def _with_decimals(table: pa.Table, log: ClickLog) -> pa.Table:
    """The table. If it is of a text file, a column of text that are all numbers becomes numeric."""
    for place, name in enumerate(table.column_names if _is_text(log) else ()):
        if pa.types.is_string(table[name].type):
            table = table.set_column(place, name, _decimals(table[name]))
    return table


def _decimals(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers with a fraction, if all text is, and no two different texts are one number."""
    if not pc.all(pc.match_substring_regex(text, DECIMAL)).as_py():
        return text
    values = text.cast(pa.float64())
    return values if len(pc.unique(values)) == len(pc.unique(text)) else text

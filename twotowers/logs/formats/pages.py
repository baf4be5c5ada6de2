"""Reader of logs with a row per result page: lists of documents and of clicks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import check_choice
from twotowers.files.artefacts import Source, files_of
from twotowers.files.batches import column_names, read_batches
from twotowers.files.columns import Rows, is_text
from twotowers.logs.layouts import named
from twotowers.logs.sessions import BATCH, EQUAL, Stream, conform
from twotowers.logs.strays import Tally

LAYOUT = "a row per result page, with lists of documents and clicks"

OPTIONAL = ("query", "split", "user", EQUAL)
"""Columns that are read if they exist."""
CLICKS = ("flags", "documents")
PADDED = "query_doc_ids"
"""The column of CLAX, whose pages may be padded with 0."""


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    bias: Sequence[str] = (),
    clicks: str = "flags",
    strays: str = "drop",
    repeats: str = "drop",
) -> Stream:
    """Read a parquet or feather file, a row per result page; or, with a column `page_count`, a row
    for so many equal pages.

    Without a query all pages have query 0. `clicks` are 'flags', a number of clicks per document;
    or 'documents', the clicked documents.
    """
    check_choice(clicks, CLICKS, field="clicks")
    tally = Tally(path, strays=strays, repeats=repeats)
    files = [(each, _named(each, columns, bias)) for each in files_of(path)]
    return Stream(_batches(files, clicks, tally), tally.seen)


def _named(file, columns: Mapping[str, str] | None, further: Sequence[str]) -> dict[str, str]:
    """The column of a file for each of ours. Only ids of pairs need no query."""
    required = ["documents", "clicks"]
    if not columns and "query_doc_ids" not in column_names(file):
        required.insert(0, "query")
    return named(file, required, columns, further, OPTIONAL)


def _batches(files: list, clicks: str, tally: Tally) -> Iterator[pa.RecordBatch]:
    counted = any(EQUAL in names for _, names in files)
    for path, names in files:
        tally.path, row = path, 0
        for whole in read_batches(path, [*dict.fromkeys(names.values())]):
            for start in range(0, len(whole), BATCH):
                batch, rows = whole.slice(start, BATCH), Rows(path, row)
                page = {ours: batch[theirs] for ours, theirs in names.items()}
                if EQUAL in names:
                    page[EQUAL] = pa.array(rows.whole(page[EQUAL], EQUAL))
                elif counted:
                    page[EQUAL] = pa.repeat(pa.scalar(1, pa.int64()), len(batch))
                conformed = _conformed(page, len(batch), names, rows, clicks, tally)
                yield conformed.filter(pc.greater(conformed[EQUAL], 0)) if counted else conformed
                row += len(batch)


def _conformed(
    page: dict, size: int, names: Mapping[str, str], rows: Rows, clicks: str, tally: Tally
) -> pa.RecordBatch:
    inner = {*names} - {"query", "split", "user", EQUAL} if is_text(page["documents"].type) else ()
    page |= {name: _split(page[name]) for name in inner if is_text(page[name].type)}
    if names["documents"] == PADDED:
        page = _unpadded(page, rows)
    page.setdefault("query", pa.repeat(pa.scalar(0, pa.int64()), size))
    for name in ("documents", "clicks"):
        rows.a_list(page[name], name)
    times = page[EQUAL].to_numpy() if EQUAL in page else np.ones(size, int)
    if "user" in page:
        page["user"] = tally.users(page["user"], times)
    if clicks == "flags":
        page["clicks"] = click_flags(page["clicks"], tally, rows, times)
    else:
        page["clicks"] = tally.pages(page["documents"], page["clicks"], rows.before, times)
    return conform(pa.RecordBatch.from_pydict(page), rows.path, rows.before)


def _split(column: pa.Array) -> pa.Array:
    """Lists of text, which a csv file has as `a|b|c`, or as Python or JSON prints them."""
    plain = pc.replace_substring_regex(column, r"""^\[|\]$|['"]""", "")
    bars = pc.any(pc.match_substring(plain, "|")).as_py()
    lists = pc.split_pattern(plain, "|" if bars else ",")
    return pa.ListArray.from_arrays(lists.offsets, pc.utf8_trim_whitespace(lists.values))


def _unpadded(page: dict, rows: Rows) -> dict:
    """The columns without the documents 0 at the end of pages, with which CLAX pads them."""
    documents, clicks = page["documents"], page["clicks"]
    rows.a_list(documents, "documents")
    lengths = documents.value_lengths().to_numpy()
    flat = documents.flatten()
    if not pa.types.is_integer(flat.type) or flat.null_count:
        return page
    place = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ends = np.zeros(len(lengths), np.int64)
    page_of = np.repeat(np.arange(len(lengths)), lengths)
    np.maximum.at(ends, page_of, np.where(flat.to_numpy() != 0, place + 1, 0))
    if np.array_equal(ends, lengths) or not np.array_equal(lengths, pc.list_value_length(clicks)):
        return page
    kept = place < np.repeat(ends, lengths)
    offsets = pa.array(np.append(0, np.cumsum(ends)), pa.int32())
    lists = [name for name, each in page.items() if hasattr(each, "value_lengths")]
    cut = {n: pa.ListArray.from_arrays(offsets, page[n].flatten().filter(kept)) for n in lists}
    return page | cut


def click_flags(column: pa.Array, tally: Tally, rows: Rows, times: np.ndarray | int = 1):
    # The row in a message is that of the page, not the place among all clicks.
    inside, lengths = rows.inside(column), column.value_lengths().to_numpy()
    values = inside.whole(column.flatten(), "clicks")
    times = np.broadcast_to(times, len(column))
    tally.seen["pages"] += int(times.sum())
    flags = tally.numbers(values, inside.name, np.repeat(times, lengths))
    offsets = np.append(0, np.cumsum(lengths))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flags)

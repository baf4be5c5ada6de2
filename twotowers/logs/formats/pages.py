"""Reader of logs with a row per result page: lists of documents and of clicks."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import check_choice
from twotowers.files.artefacts import Source, files_of
from twotowers.files.batches import column_names, read_batches
from twotowers.files.columns import Rows
from twotowers.logs.layouts import named
from twotowers.logs.sessions import BATCH, EQUAL, Stream, conform
from twotowers.logs.strays import Tally

LAYOUT = "a row per result page, with lists of documents and clicks"

OPTIONAL = ("query", "split", "user", EQUAL)
"""Columns that are read if they exist."""
CLICKS = ("flags", "documents")
PADDED = "query_doc_ids"
"""The column of CLAX, which pads pages with 0."""


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
    if not columns and PADDED not in column_names(file):
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
                if names["documents"] == PADDED:
                    page = _unpadded(page)
                if EQUAL in names:
                    page[EQUAL] = pa.array(rows.whole(page[EQUAL], EQUAL))
                elif counted:
                    page[EQUAL] = pa.repeat(pa.scalar(1, pa.int64()), len(batch))
                pages = conformed(page, len(batch), rows, tally, clicks)
                yield pages.filter(pc.greater(pages[EQUAL], 0)) if counted else pages
                row += len(batch)


def conformed(
    page: dict, size: int, rows: Rows, tally: Tally, clicks: str = CLICKS[0]
) -> pa.RecordBatch:
    """So many pages in the types of `twotowers.logs.sessions`, from their columns by our names."""
    page.setdefault("query", pa.repeat(pa.scalar(0, pa.int64()), size))
    for name in ("documents", "clicks"):
        rows.a_list(page[name], name)
    times = page[EQUAL].to_numpy() if EQUAL in page else np.ones(size, int)
    if "user" in page:
        page["user"] = tally.users(page["user"], times)
    if clicks == "flags":
        page["clicks"] = _click_flags(page["clicks"], tally, rows, times)
    else:
        page["clicks"] = tally.pages(page["documents"], page["clicks"], rows.before, times)
    return conform(pa.RecordBatch.from_pydict(page), rows.path, rows.before)


def _unpadded(page: dict) -> dict:
    """The columns without the documents 0, with which CLAX pads its pages."""
    lists = {name: each for name, each in page.items() if hasattr(each, "value_lengths")}
    if "documents" not in lists or not pa.types.is_integer(lists["documents"].type.value_type):
        return page
    lengths = lists["documents"].value_lengths()
    if not all(each.value_lengths().equals(lengths) for each in lists.values()):
        return page
    kept = pc.fill_null(pc.not_equal(lists["documents"].flatten(), 0), True)
    ends = np.append(0, np.cumsum(kept))[np.append(0, np.cumsum(lengths))]
    offsets = pa.array(ends, pa.int32())
    return page | {
        name: pa.ListArray.from_arrays(offsets, each.flatten().filter(kept))
        for name, each in lists.items()
    }


def _click_flags(column: pa.Array, tally: Tally, rows: Rows, times: np.ndarray) -> pa.Array:
    # The row in a message is that of the page, not the place among all clicks.
    inside, lengths = rows.inside(column), column.value_lengths().to_numpy()
    values = inside.whole(column.flatten(), "clicks")
    tally.seen["pages"] += int(times.sum())
    flags = tally.numbers(values, inside.name, np.repeat(times, lengths))
    offsets = np.append(0, np.cumsum(lengths))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flags)

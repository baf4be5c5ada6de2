"""Reader of logs with a row per result page: lists of documents and of clicks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers import LOG
from twotowers.errors import InputError, check_choice, nearest
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, read_batches
from twotowers.files.columns import Rows
from twotowers.files.frames import Source
from twotowers.logs.sessions import BATCH, RESERVED, Stream, check_free, conform
from twotowers.logs.strays import Tally

LAYOUT = "a row per result page, with lists of documents and clicks"

LAYOUTS = (
    {"query": "query", "documents": "documents", "clicks": "clicks"},
    # clax-datasets: Yandex; then Baidu-ULTR, whose ids are of pairs of query and document.
    {"query": "query_id", "documents": "query_doc_ids", "clicks": "clicks"},
    {"documents": "query_doc_ids", "clicks": "clicks"},
)
"""Names that are recognised by default: ours -> the file's."""
OPTIONAL = ("split", "user")
"""Columns that are read if they exist."""
CLICKS = ("flags", "documents")


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    lanes: Sequence[str] = (),
    bias: Sequence[str] = (),
    clicks: str = "flags",
    split: str = LOG,
    strays: str = "drop",
    repeats: str = "drop",
) -> Stream:
    """Read a parquet or feather file, a row per result page.

    Args:
        path: the file, or a pattern of files such as `part-*`.
        columns: our name -> the file's, for split, query, documents, clicks, user, lanes and bias
            features. The other columns are named as in the first of `LAYOUTS` that fits, and
            `split` and `user` are read if they exist. Without a query all pages have query 0.
        lanes: further columns to keep, a value per page. None has the name of a column of ours.
        bias: further columns to keep: bias features, a list per page. As for lanes.
        clicks: 'flags', a number of clicks per document; or 'documents', the clicked documents.
        split: the split of all pages, if no column has it.
        strays: 'drop' or 'error': clicks on documents that are not on the page.
        repeats: 'drop' or 'error': further clicks on a document of one page.

    Returns:
        Pages as `twotowers.logs.sessions` describes, and the number of dropped clicks.

    Raises:
        InputError: at once, for a wrong file, column or setting; while batches are taken, for a
            row that is not a page, with row, field, value and what was expected.

    Examples:
        >>> import pyarrow.parquet as pq
        >>> pages = {"query_id": [7], "query_doc_ids": [[30, 10]], "clicks": [[0, 2]]}
        >>> pq.write_table(pa.table(pages), "pages.parquet")
        >>> log = read("pages.parquet")
        >>> [batch["clicks"].to_pylist() for batch in log.batches], log.seen["repeated_clicks"]
        ([[[False, True]]], 1)
    """
    check_choice(clicks, CLICKS, field="clicks")
    tally = Tally(path, strays=strays, repeats=repeats)
    optional, further = (*OPTIONAL, "query"), [*lanes, *bias]
    files = [(each, named(each, LAYOUTS, columns, further, optional)) for each in files_of(path)]
    return Stream(_batches(files, clicks, split, tally), tally.seen)


def named(
    path: Source,
    layouts: Sequence[Mapping[str, str]],
    columns: Mapping[str, str] | None,
    further: Sequence[str],
    optional: Sequence[str] = OPTIONAL,
) -> dict[str, str]:
    """The column of a file for each of ours.

    Args:
        path: the file.
        layouts: our names -> the file's. The first one counts whose columns exist.
        columns: our names -> the file's, which replace those of the layouts.
        further: lanes and bias features.
        optional: further columns of ours, which are read if they exist.

    Raises:
        InputError: no layout fits, a named column is missing or none of ours, or a lane or bias
            feature has the name of another column.
    """
    found, given = column_names(path), dict(columns or {})
    ours = {*optional, *(name for layout in layouts for name in layout)}
    check_free(further, {*RESERVED, *ours})
    for name in given:
        check_choice(name, {*ours, *further}, path=path, field="columns", what="not read")
    _check_found(given, found, path)
    candidates = [{**layout, **given} for layout in layouts]
    fitting = [each for each in candidates if set(each.values()) <= set(found)]
    if not fitting:
        wanted = dict.fromkeys(", ".join(each.values()) for each in candidates)
        raise InputError(
            f"the columns are {', '.join(found)}",
            path=path,
            expected=" or ".join(wanted) + "; or `columns` with the names in the file",
        )
    others = [*(name for name in optional if name in found), *further]
    names = {**{name: name for name in others}, **fitting[0]}
    _check_found(names, found, path)
    return names


def _check_found(names: Mapping[str, str], found: Sequence[str], path: str | Path) -> None:
    for ours, theirs in names.items():
        if theirs not in found:
            raise InputError(
                f"there is no column {theirs!r}",
                path=path,
                field=ours,
                expected=nearest(theirs, found),
            )


def _batches(files: list, clicks: str, split: str, tally: Tally) -> Iterator[pa.RecordBatch]:
    for path, names in files:
        tally.path = path
        yield from _of_file(path, names, clicks, split, tally)


def _of_file(path, names: dict[str, str], clicks: str, split: str, tally: Tally) -> Iterator:
    row = 0
    for whole in read_batches(path, list(names.values())):
        for start in range(0, len(whole), BATCH):
            batch = whole.slice(start, BATCH)
            page = {ours: batch[theirs] for ours, theirs in names.items()}
            page.setdefault("split", pa.repeat(split, len(batch)))
            page.setdefault("query", pa.repeat(pa.scalar(0, pa.int64()), len(batch)))
            rows = Rows(path, row)
            for name in ("documents", "clicks"):
                rows.a_list(page[name], name)
            if clicks == "flags":
                page["clicks"] = click_flags(page["clicks"], tally, rows)
            else:
                page["clicks"] = tally.pages(page["documents"], page["clicks"], row)
            yield conform(pa.RecordBatch.from_pydict(page), path, row)
            row += len(batch)


def click_flags(column: pa.Array, tally: Tally, rows: Rows) -> pa.Array:
    # The row in a message is that of the page, not the place among all clicks.
    inside = rows.inside(column)
    values = inside.whole(column.flatten(), "clicks")
    tally.seen["pages"] += len(column)
    offsets = np.append(0, np.cumsum(column.value_lengths()))
    flags = tally.numbers(values, inside.name)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flags)

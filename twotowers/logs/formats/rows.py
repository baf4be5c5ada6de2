"""Reader of logs with a row per shown document. The rows of a page follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import check_choice, check_range
from twotowers.files.artefacts import files_of
from twotowers.files.batches import read_batches
from twotowers.files.columns import LONGEST, Rows, check_ids, whole_runs
from twotowers.files.frames import Source
from twotowers.logs.formats.pages import named
from twotowers.logs.sessions import Stream, conform
from twotowers.logs.strays import Tally
from twotowers.splits import LOG

LAYOUT = "a row per shown document"

REQUIRED = ("session", "query", "document", "clicks")
OPTIONAL = ("position", "split", "user")
TOGETHER = "the rows of a page one after the other"
GAPS = ("error", "close")
IDS = ("query", "document")


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    lanes: Sequence[str] = (),
    bias: Sequence[str] = (),
    first: int = 1,
    gaps: str = "error",
    split: str = LOG,
    repeats: str = "drop",
) -> Stream:
    """Read csv, parquet or feather files, a row per document shown.

    Consecutive rows with the same value in the column `session` are a result page. A session that
    returns after others is refused if both of its places are in memory at once, or the first is
    among the first rows of the file, as in a log that was appended twice. Columns of a csv file
    are text (`twotowers.logs.log.Log.of_batches` makes numbers of it).

    Args:
        path: the file, or a pattern of files such as `part-*`. A page is in one of them.
        columns: our name -> the file's, for session, split, query, document, position, clicks,
            user, lanes and bias features. Other columns have these names, or usual ones
            (`twotowers.logs.layouts.USUAL`). Without a position the order of rows is the order
            of documents.
        lanes: further columns to keep, one value per page. None has the name of a column of ours.
        bias: further columns to keep, one value per document. As for lanes.
        first: the number of the first position.
        gaps: 'error', or 'close' to number the documents of a page anew if positions are
            missing. To keep the positions, give them another name, such as
            `columns={"shown_at": "position"}, bias=["shown_at"]`.
        split: the split of all pages, if no column has it.
        repeats: 'drop' or 'error': further clicks on a document of one page.

    Returns:
        Pages as `twotowers.logs.sessions` describes, and the number of dropped clicks.

    Examples:
        >>> from pathlib import Path
        >>> text = "session,query,document,position,clicks\\na,7,x,1,0\\na,7,y,2,1\\nb,7,y,1,0\\n"
        >>> _ = Path("rows.csv").write_text(text)
        >>> batches = read("rows.csv").batches
        >>> [page for batch in batches for page in batch["documents"].to_pylist()]
        [['x', 'y'], ['y']]
    """
    check_choice(gaps, GAPS, field="gaps")
    check_range(first, field="first", low=0, high=LONGEST, whole=True)
    tally = Tally(path, repeats=repeats)
    named_in = {
        file: named(file, REQUIRED, columns, [*lanes, *bias], OPTIONAL) for file in files_of(path)
    }
    options = list(bias), first, gaps == "close", split, tally
    return Stream(_of_files(named_in, *options), tally.seen)


def _of_files(named_in: Mapping, *options) -> Iterator[pa.RecordBatch]:
    for file, names in named_in.items():
        yield from _Rows(file, names, *options).batches()


class _Rows:
    """Cuts rows into pages."""

    def __init__(self, path, names, bias, first, close, split, tally):
        self.path, self.names, self.bias = path, names, bias
        self.first, self.close, self.split, self.tally = first, close, split, tally
        tally.path = path
        inner = {"session", "document", "position", "clicks", *bias}
        self.per_page = [name for name in names if name not in inner]
        self.rows = Rows(path)  # the current ones

    def batches(self) -> Iterator[pa.RecordBatch]:
        # A column of the file may be two of ours.
        wanted = list(dict.fromkeys(self.names.values()))
        first = None

        def starts(table: pa.Table, rows: Rows) -> np.ndarray:
            nonlocal first
            session = table[self.names["session"]]
            rows.present(session, "session", "an id of the page")
            # Not among all rows, since a set of all sessions would have no bound.
            found = rows.runs(session, "session", TOGETHER, others="sessions", before=first)
            if first is None:
                first = session.take(pa.array(found[:-1])).combine_chunks()
            return found

        batches = read_batches(self.path, wanted)
        tables = (pa.Table.from_arrays([each[n] for n in wanted], names=wanted) for each in batches)
        for rows, table, at in whole_runs(tables, starts, self.path, "session", "page"):
            self.rows = rows
            yield from self._pages(table, at)

    def _pages(self, table: pa.Table, starts: np.ndarray) -> Iterator[pa.RecordBatch]:
        page = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(table)))
        pages = {name: self._of_page(table, name, starts, page) for name in self.per_page}
        pages.setdefault("split", pa.repeat(self.split, len(starts)))
        clicks = self.rows.whole(self._flat(table, "clicks"), "clicks")
        clicked = self.tally.numbers(clicks, self.rows.name)
        order = self._order(table, page, starts)
        offsets = pa.array(np.append(starts, len(table)), pa.int32())

        def lists(values: pa.Array) -> pa.ListArray:
            return pa.ListArray.from_arrays(offsets, values.take(pa.array(order)))

        pages["documents"] = lists(self._flat(table, "document"))
        pages["clicks"] = lists(pa.array(clicked))
        pages |= {name: lists(self._flat(table, name)) for name in self.bias}
        for name in ("document", *self.bias):
            self.rows.present(self._flat(table, name), name, "a value per row")
        for name in IDS:
            check_ids(self._flat(table, name).type, name, self.path)
        self.tally.seen["pages"] += len(starts)
        yield conform(pa.RecordBatch.from_pydict(pages), self.path)

    def _flat(self, table: pa.Table, name: str) -> pa.Array:
        return table[self.names[name]].combine_chunks()

    def _of_page(self, table, name: str, starts: np.ndarray, page: np.ndarray) -> pa.Array:
        """The one value of each page."""
        column = self._flat(table, name)
        self.rows.present(column, name, "a value per row")
        found = column.take(pa.array(starts))
        self.rows.check(
            pc.equal(column, found.take(pa.array(page))),
            name,
            lambda at: f"{column[at]} and {found[page[at]]} on one page",
            "one value per page",
        )
        return found

    def _order(self, table: pa.Table, page: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The rows, ordered by page and position."""
        rows = np.arange(len(table))
        if "position" not in self.names:
            return rows
        hint = "; or first=0, if positions count from 0" if self.first else ""
        position = self._flat(table, "position")
        position = self.rows.whole(position, "position", self.first, hint)
        order = np.lexsort([position, page])
        found = position[order]
        expected = rows - starts[page] + self.first
        sorted_rows = replace(self.rows, number=order)
        differs = (np.diff(found, prepend=-1) != 0) | (np.diff(page, prepend=-1) != 0)
        sorted_rows.check(
            differs,
            "position",
            lambda at: f"{found[at]} is the position of two rows of a page",
            "a row per position",
        )
        if not self.close:
            sorted_rows.check(
                found == expected,
                "position",
                lambda at: f"{found[at]} was found where {expected[at]} should be",
                f"{TOGETHER}, and positions {self.first}, {self.first + 1}, ...; or gaps='close'",
            )
        return order

"""Reader of logs with a row per shown document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_choice, check_names, check_range
from twotowers.files.artefacts import Source, files_of
from twotowers.files.batches import placed_batches
from twotowers.files.columns import LONGEST, Rows, check_ids, whole_runs
from twotowers.logs.counted import alike
from twotowers.logs.layouts import named
from twotowers.logs.sessions import OWN, TIME, Stream, conform
from twotowers.logs.sorting import sorted_rows
from twotowers.logs.strays import Tally

LAYOUT = "a row per shown document"

REQUIRED = ("session", "query", "document", "clicks")
OPTIONAL = ("position", "split", "user")
GAPS = ("keep", "close", "error")
MEAN = "; a mean position tells nothing, but clicks and impressions at each position do"
TELLING = 20
"""Clicks, all of them at the lowest position where nothing else is, that are no chance."""
IDS = ("query", "document")
SORTED = ("document", "clicks", "place", "row")
"""Columns that `sorted_rows` knows."""


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    page: Sequence[str] = (),
    bias: Sequence[str] = (),
    first: int = 1,
    gaps: str = "keep",
    repeats: str = "drop",
    keys: bool = False,
) -> Stream:
    """Read csv, parquet or feather files, a row per document shown, in any order.

    Rows with the same value in the column `session`, or in those of `page`, are a result page, or
    several if positions start again (`twotowers.logs.sorting`). Columns of a csv file are text
    (`twotowers.logs.log.Log.of_batches` makes numbers of it).

    Args:
        columns: without a position the order of rows is the order of documents.
        page: columns of the file that together tell pages apart, such as a visit and the query.
        first: the number of the first position.
        gaps: where positions are missing, 'keep' those of the others, 'close' to number the
            documents of a page anew, or 'error'.
    """
    check_choice(gaps, GAPS, field="gaps")
    check_range(first, field="first", low=0, high=LONGEST, whole=True)
    tally = Tally(path, repeats=repeats)
    named_in = {file: named(file, REQUIRED, columns, bias, OPTIONAL) for file in files_of(path)}
    if page:
        check_names(page, field="page")
    rows = _Rows(path, named_in, list(page), list(bias), first, gaps, tally, keys)
    return Stream(rows.batches(), tally.seen)


class _Rows:
    """Sorts rows into pages."""

    def __init__(self, path, named_in, page, bias, first, gaps, tally, keep):
        self.path, self.named_in, self.page, self.bias = path, named_in, page, bias
        self.first, self.gaps, self.tally, self.keep = first, gaps, tally, keep
        self.names, self.time = next(iter(named_in.values())), None
        inner = {"session", "document", "position", "clicks", *bias}
        self.per_page = [name for name in self.names if name not in inner]
        # The columns of the file that tell pages apart.
        self.keys = {OWN + key: key for key in page or [self.names["session"]]}
        self.columns = [*self.per_page, *bias, *self.keys]
        self.made = {name: f"c{number}" for number, name in enumerate(self.columns)}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The pages, in the order in which they begin."""

        def starts(table: pa.Table, _: Rows) -> np.ndarray:
            return np.flatnonzero(np.diff(table["page"].to_numpy(), prepend=-1))

        names = [*self.made.values(), *SORTED]
        rows = (
            pa.RecordBatch.from_arrays(batch.columns, names=names)
            for batch in alike(self._checked())
        )
        tables = sorted_rows(
            rows,
            [self.made[name] for name in self.keys],
            query=self.made["query"],
            visit=() if self.page else [self.names["session"], self.names["query"]],
            ranked="position" in self.names,
            path=self.path,
        )
        with closing(tables):
            for _, table, at in whole_runs(tables, starts, self.path, "session", "page"):
                yield self._pages(table, at)

    def _checked(self) -> Iterator[pa.RecordBatch]:
        """The rows of all files, with `columns` and `SORTED`."""
        total = 0
        for path, names in self.named_in.items():
            theirs = {**names, **self.keys}
            for rows, batch in placed_batches(path, [*theirs.values()]):
                given = {ours: batch[name] for ours, name in theirs.items()}
                for name, key in self.keys.items():
                    field = key if self.page else "session"
                    rows.present(given[name], field, "an id of the page")
                own = [name for name in self.columns if name in given]
                for name in ("document", *own):
                    if name not in ("user", TIME):
                        rows.present(given[name], name, "a value per row")
                for name in IDS:
                    check_ids(given[name].type, name, path)
                clicks = rows.whole(given["clicks"], "clicks")
                place = pa.nulls(len(batch), pa.int64())
                if "position" in given:
                    place = pa.array(self._positions(given["position"], clicks > 0, rows))
                row = pa.array(np.arange(total, total + len(batch)))
                total += len(batch)
                columns = [given[name] for name in (*own, "document")]
                yield pa.RecordBatch.from_arrays(
                    [*columns, pa.array(clicks), place, row], names=[*own, *SORTED]
                )

    def _positions(self, column: pa.Array, clicked: np.ndarray, rows: Rows) -> np.ndarray:
        """[rows] positions as the file has them."""
        expected = f"a whole number from {self.first} on"
        rows.present(column, "position", "a position per row; leave out rows without one")
        position = rows.whole(column, "position", 0, MEAN)
        lowest = position == position.min()
        if clicked.sum() >= TELLING and not lowest.all() and np.array_equal(lowest, clicked):
            raise InputError(
                f"all {clicked.sum():,} clicks are at position {position.min()}, and no other row",
                path=rows.path,
                field="position",
                expected="the position at which a clicked document was shown",
            )
        rows.check(
            position >= self.first,
            "position",
            lambda at: f"{column[at].as_py()!r} was found",
            f"{expected}; or first=0, if positions count from 0",
            {"first": 0},
        )
        return position

    def _pages(self, table: pa.Table, starts: np.ndarray) -> pa.RecordBatch:
        rows = Rows(self.path, 0, table["row"].to_numpy())
        made = {**self.made, "documents": "document"}
        flat = {name: table[own].combine_chunks() for name, own in made.items()}
        pages = {name: self._of_page(flat[name], name, starts, rows) for name in self.per_page}
        for name in self.keys if self.keep else ():
            pages[name] = flat[name].take(pa.array(starts))
        clicked = self.tally.numbers(table["clicks"].to_numpy(), rows.name)
        inside = {"documents": flat["documents"], "clicks": pa.array(clicked)}
        inside |= {name: flat[name] for name in self.bias}
        if TIME in inside:
            inside[TIME] = rows.present(self._times(inside[TIME], starts), TIME, "a value per row")
        if "position" in self.names and self.gaps != "close":
            inside["position"] = self._places(table["place"].to_numpy(), starts, rows)
        offsets = pa.array(np.append(starts, len(table)), pa.int32())
        pages |= {name: pa.ListArray.from_arrays(offsets, each) for name, each in inside.items()}
        self.tally.seen["pages"] += len(starts)
        return conform(pa.RecordBatch.from_pydict(pages), self.path)

    def _of_page(self, column: pa.Array, name: str, starts: np.ndarray, rows: Rows) -> pa.Array:
        """The one value of each page."""
        page = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(column)))
        found = column.take(pa.array(starts))
        if name == "user":
            found = self.tally.users(found)
            column = pc.coalesce(column, found.take(pa.array(page)))
        rows.check(
            pc.equal(column, found.take(pa.array(page))),
            name,
            lambda at: f"{column[at]} and {found[page[at]]} on one page",
            "one value per page",
        )
        return found

    def _times(self, times: pa.Array, starts: np.ndarray) -> pa.Array:
        """The times of rows; where one is missing, that of the row before."""
        lacking = times.take(pa.array(starts)).null_count
        self.tally.add("pages_without_time", lacking)
        if times.null_count:
            before = [] if self.time is None else [self.time]
            filled = pc.fill_null_forward(pa.concat_arrays([*before, times]))
            times = pc.fill_null_backward(filled.slice(len(filled) - len(times)))
        self.time = times.slice(max(len(times) - 1, 0))
        return times

    def _places(self, position: np.ndarray, starts: np.ndarray, rows: Rows) -> pa.Array:
        """The positions of rows, from 1."""
        lengths = np.diff(starts, append=len(position))
        expected = np.arange(len(position)) - np.repeat(starts, lengths) + self.first
        if self.gaps == "error":
            rows.check(
                position == expected,
                "position",
                lambda at: f"{position[at]} was found where {expected[at]} should be",
                f"positions {self.first}, {self.first + 1}, ... on a page; or gaps='keep'",
            )
        last = starts + lengths - 1
        self.tally.add("pages_missing_positions", int((position > expected)[last].sum()))
        return pa.array((position - self.first + 1).astype(np.int32))

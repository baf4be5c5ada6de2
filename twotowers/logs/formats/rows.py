"""Reader of logs with a row per shown document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_choice, check_names, check_range
from twotowers.files.artefacts import Source, files_of
from twotowers.files.batches import read_batches
from twotowers.files.columns import LONGEST, Rows, check_ids, whole_runs
from twotowers.logs.layouts import named
from twotowers.logs.sessions import OWN, TIME, Stream, Unsorted, conform
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


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    page: Sequence[str] = (),
    bias: Sequence[str] = (),
    first: int = 1,
    gaps: str = "keep",
    repeats: str = "drop",
    together: bool = True,
    keys: bool = False,
) -> Stream:
    """Read csv, parquet or feather files, a row per document shown.

    Rows with the same value in the column `session`, or in those of `page`, are a result page, or
    several if positions start again (`twotowers.logs.sorting`). Columns of a csv file are text
    (`twotowers.logs.log.Log.of_batches` makes numbers of it).

    Args:
        columns: without a position the order of rows is the order of documents.
        page: columns of the file that together tell pages apart, such as a visit and the query.
        first: the number of the first position.
        gaps: where positions are missing, 'keep' those of the others, 'close' to number the
            documents of a page anew, or 'error'.
        together: whether the rows of a page follow each other. `Unsorted` is raised if they do not;
            with False, the rows are sorted.
    """
    check_choice(gaps, GAPS, field="gaps")
    check_range(first, field="first", low=0, high=LONGEST, whole=True)
    tally = Tally(path, repeats=repeats)
    named_in = {file: named(file, REQUIRED, columns, bias, OPTIONAL) for file in files_of(path)}
    if page:
        check_names(page, field="page")
    rows = _Rows(path, named_in, list(page), list(bias), first, gaps, tally, keys)
    return Stream(rows.batches(together), tally.seen)


class _Rows:
    """Cuts rows into pages."""

    def __init__(self, path, named_in, page, bias, first, gaps, tally, keep):
        self.path, self.named_in, self.page, self.bias = path, named_in, page, bias
        self.first, self.gaps, self.tally = first, gaps, tally
        self.keep, self.time = keep, None
        self.names = next(iter(named_in.values()))
        inner = {"session", "document", "position", "clicks", *bias}
        self.per_page = [name for name in self.names if name not in inner]
        self.rows = Rows(path)  # the current ones
        self.sessions = [np.zeros(0, np.int64)]  # hashes of all so far
        self.sorted = False

    def batches(self, together: bool) -> Iterator[pa.RecordBatch]:
        if not together:
            yield from self._sorted()
            return
        for file, names in self.named_in.items():
            self.names = names
            yield from self._of_file(file)
        if not pd.Index(np.concatenate(self.sessions)).is_unique:
            raise Unsorted

    @property
    def keys(self) -> list[str]:
        """The columns of the file that identify a page."""
        return self.page or [self.names["session"]]

    def _of_file(self, path) -> Iterator[pa.RecordBatch]:
        waits = False

        def starts(table: pa.Table, rows: Rows) -> np.ndarray:
            nonlocal waits
            self._check_keys(table, rows)
            new = np.zeros(len(table), bool)
            new[:1] = True
            for key in self.keys:
                column = table[key]
                new[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(table) - 1)).to_numpy()
            starts_here = np.flatnonzero(new)
            own = table.select(self.keys).take(pa.array(starts_here[int(waits) :]))
            own = own.to_pandas(ignore_metadata=True)
            number = pd.util.hash_pandas_object(own, index=False).to_numpy().view(np.int64)
            if not pd.Index(number).is_unique:
                raise Unsorted
            self.sessions.append(number)
            waits = True
            return starts_here

        for rows, table, at in whole_runs(self._tables(path), starts, path, "session", "page"):
            self.rows = rows
            yield self._pages(table, at)

    @property
    def wanted(self) -> list[str]:
        """The columns of the file that are read. One of them may be two of ours."""
        return list(dict.fromkeys([*self.names.values(), *self.keys]))

    def _tables(self, path) -> Iterator[pa.Table]:
        self.tally.path = path
        for batch in read_batches(path, self.wanted):
            yield pa.Table.from_batches([batch])

    def _check_keys(self, table: pa.Table, rows: Rows) -> None:
        for key in self.keys:
            rows.present(table[key], key if self.page else "session", "an id of the page")

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        """The pages of all files, whose rows are in any order."""
        self.sorted = True

        def numbered() -> Iterator[pa.RecordBatch]:
            total, kinds = 0, None
            for path, named_here in self.named_in.items():
                self.names, self.rows = named_here, Rows(path)
                for table in self._tables(path):
                    self._check_keys(table, self.rows)
                    clicks = self.rows.whole(self._flat(table, "clicks"), "clicks")
                    place = pa.nulls(len(table), pa.int64())
                    if "position" in self.names:
                        place = pa.array(self._positions(table, clicks > 0))
                    both = enumerate(table.columns)
                    columns = {f"c{number}": each.combine_chunks() for number, each in both}
                    columns |= {
                        "document": self._flat(table, "document"),
                        "clicks": pa.array(clicks),
                        "place": place,
                        "row": pa.array(np.arange(total, total + len(table))),
                    }
                    batch = pa.RecordBatch.from_pydict(columns)
                    kinds = kinds or batch.schema
                    yield batch.cast(kinds)
                    total += len(table)
                    self.rows = Rows(path, self.rows.before + len(table))

        keys = [f"c{self.wanted.index(key)}" for key in self.keys]
        ranked = "position" in self.names
        tables = sorted_rows(numbered(), keys, ranked=ranked, path=self.path)

        def starts(table: pa.Table, _: Rows) -> np.ndarray:
            return np.flatnonzero(np.diff(table["page"].to_numpy(), prepend=-1))

        for _, table, at in whole_runs(tables, starts, self.path, "session", "page"):
            self.rows = Rows(self.path, 0, table["row"].to_numpy())
            columns = dict(zip(self.wanted, table.columns, strict=False))
            columns |= {self.names["clicks"]: table["clicks"]}
            columns |= {self.names["position"]: table["place"]} if ranked else {}
            yield self._pages(pa.table(columns), at)

    def _pages(self, table: pa.Table, starts: np.ndarray) -> pa.RecordBatch:
        page = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(table)))
        pages = {name: self._of_page(table, name, starts, page) for name in self.per_page}
        for key in self.keys if self.keep else ():
            pages[OWN + key] = table[key].combine_chunks().take(pa.array(starts))
        clicks = self.rows.whole(self._flat(table, "clicks"), "clicks")
        order, places = self._order(table, page, clicks > 0)
        clicked = self.tally.numbers(clicks, self.rows.name)
        offsets = pa.array(np.append(starts, len(table)), pa.int32())

        def lists(values: pa.Array) -> pa.ListArray:
            return pa.ListArray.from_arrays(offsets, values.take(pa.array(order)))

        pages["documents"] = lists(self._flat(table, "document"))
        pages["clicks"] = lists(pa.array(clicked))
        inside = {name: self._flat(table, name) for name in self.bias}
        if TIME in inside:
            inside[TIME] = self._times(inside[TIME], starts)
        pages |= {name: lists(each) for name, each in inside.items()}
        if places is not None:
            pages["position"] = lists(pa.array(places.astype(np.int32)))
            missing = np.maximum.reduceat(places, starts) > np.diff(starts, append=len(table))
            if missing.any():
                self.tally.add("pages_missing_positions", int(missing.sum()))
        for name, each in {"document": self._flat(table, "document"), **inside}.items():
            self.rows.present(each, name, "a value per row")
        for name in IDS:
            check_ids(self._flat(table, name).type, name, self.path)
        self.tally.seen["pages"] += len(starts)
        return conform(pa.RecordBatch.from_pydict(pages), self.path)

    def _flat(self, table: pa.Table, name: str) -> pa.Array:
        return table[self.names[name]].combine_chunks()

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

    def _of_page(self, table, name: str, starts: np.ndarray, page: np.ndarray) -> pa.Array:
        """The one value of each page."""
        column = self._flat(table, name)
        if name == "user":
            found = self.tally.users(column.take(pa.array(starts)))
            column = pc.coalesce(column, found.take(pa.array(page)))
        else:
            self.rows.present(column, name, "a value per row")
            found = column.take(pa.array(starts))
        visit = name == "query" and not self.page
        both = [self.names[each] for each in ("session", "query")] if visit else []
        self.rows.check(
            pc.equal(column, found.take(pa.array(page))),
            name,
            lambda at: f"{column[at]} and {found[page[at]]} on one page",
            "one value per page" + (f", of which {both[0]!r} has several" if visit else ""),
            {"page": both} if visit else None,
        )
        return found

    def _positions(self, table: pa.Table, clicked: np.ndarray) -> np.ndarray:
        """[rows] positions as the file has them."""
        column, expected = self._flat(table, "position"), f"a whole number from {self.first} on"
        self.rows.present(column, "position", "a position per row; leave out rows without one")
        position = self.rows.whole(column, "position", 0, MEAN)
        lowest = position == position.min()
        if clicked.sum() >= TELLING and not lowest.all() and np.array_equal(lowest, clicked):
            raise InputError(
                f"all {clicked.sum():,} clicks are at position {position.min()}, and no other row",
                path=self.rows.path,
                field="position",
                expected="the position at which a clicked document was shown",
            )
        self.rows.check(
            position >= self.first,
            "position",
            lambda at: f"{column[at].as_py()!r} was found",
            f"{expected}; or first=0, if positions count from 0",
            {"first": 0},
        )
        return position

    def _order(
        self, table: pa.Table, page: np.ndarray, clicked: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows, ordered by page and position; and [rows] positions from 1, if they are kept."""
        rows = np.arange(len(table))
        if "position" not in self.names:
            document = pd.factorize(self._flat(table, "document").to_pandas())[0]
            again = pd.Series(page * (len(rows) + 1) + document).duplicated()
            if self.page and again.any() and not self.sorted:
                raise Unsorted
            return rows, None
        position = self._positions(table, clicked)
        order = np.lexsort([position, page])
        sorted_position = position[order]
        again = (np.diff(sorted_position, prepend=-1) == 0) & (np.diff(page, prepend=-1) == 0)
        if again.any() and not self.sorted:
            raise Unsorted
        if self.gaps == "error":
            expected = rows - np.flatnonzero(np.diff(page, prepend=-1))[page] + self.first
            replace(self.rows, number=order).check(
                sorted_position == expected,
                "position",
                lambda at: f"{sorted_position[at]} was found where {expected[at]} should be",
                f"positions {self.first}, {self.first + 1}, ... on a page; or gaps='keep'",
            )
        return order, None if self.gaps == "close" else (position - self.first + 1)

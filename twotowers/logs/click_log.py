"""Click logs, as they are given: a file, many files or a frame, in any format and layout."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twotowers.errors import InputError, check_range
from twotowers.files.artefacts import check_target
from twotowers.files.frames import Frame, Source
from twotowers.logs.conversion import to_cells, to_sessions
from twotowers.logs.frames import Native, native, source_of
from twotowers.logs.layouts import Layout, parts_of, recognised
from twotowers.logs.opening import FORMATS, open_log
from twotowers.logs.sessions import read_sessions, seen_in, write_sessions
from twotowers.logs.warehouse import MEMORY

MOST_POSITIONS = 1000
"""Memory of a fit grows with the square of the positions."""


OF_CLICKS = "`clicks.log()`, the log of simulated clicks,"


class Trained:
    """Base of the clicks of `simulate`, and of the towers that are fitted to them by training.

    Their modules import JAX, and are not imported for anything else. None of them is a log.
    """


class Folder:
    """A folder for temporary files, which is removed with the last log that uses it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="twotowers-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class _Pages:
    """The pages of a log, in a file that is removed with it.

    Attributes:
        path: a sessions file (`twotowers.logs.sessions`).
        number: of pages.
        longest: the most documents of a page.
        clicks: number of clicked documents.
        rates: clicks per impression at the first position, and at all.
    """

    path: Path
    number: int
    longest: int
    clicks: int
    rates: tuple[float, float]
    folder: Folder


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A click log. It is read when a fit, a test or a count needs it.

    `read_log` makes one.

    Attributes:
        source: what to read: a path, a pattern of paths, or a frame.
        layout: its format, and the columns of the file behind our names.
        settings: of the format's reader.
        kind: the library of the frames that answers come in.
        rows: [pages] bool, which pages of the source are meant; None for all.
        folder: of files that are removed with the log.
        origin: what the log is a part of, if the part has a file of its own.
    """

    source: Source
    layout: Layout
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "pandas"
    rows: np.ndarray | None = None
    folder: Folder | None = None
    origin: Source | None = None

    def __repr__(self) -> str:
        some = "" if self.rows is None else f", {self.rows.sum():,} of its pages"
        return f"<click log of {self.given}: {self.layout}{some}>"

    @property
    def given(self) -> Source:
        """What was given to read: the source, or what this is a part of."""
        return self.source if self.origin is None else self.origin

    @property
    def counted(self) -> bool:
        """Whether it has counts of query, document and position only, and no pages."""
        return FORMATS[self.layout.format].counted

    def reading(self, bias: Sequence[str] | None = None) -> dict[str, Any]:
        """The format, the settings of its reader, and the names of columns.

        Args:
            bias: the bias features to read; None for those that `read_log` was told.
        """
        told = self.settings.get("bias", ())
        wanted = list(told if bias is None else bias)
        # A reader refuses the name of a column that it does not read.
        unread = {*told} - {*wanted}
        columns = {ours: name for ours, name in self.layout.columns.items() if ours not in unread}
        settings = {name: each for name, each in self.settings.items() if name != "bias"}
        lists = {name: each for name, each in (("bias", wanted), ("columns", columns)) if each}
        return {"format": self.layout.format, **settings, **lists}

    def check_out(self, out: str | Path, *endings: str) -> None:
        """Raise InputError if a file cannot be written there, or would replace one of the log's."""
        check_out(self.given, out, *endings)

    def whole(self, bias: Sequence[str] = ()) -> ClickLog:
        """This log; a part of a log as a log of its own, whose pages are in a file.

        Args:
            bias: features that the file has, besides those that `read_log` was told.
        """
        if self.rows is None:
            return self
        told, folder = self.settings.get("bias", ()), Folder()
        settings = {**self.settings, "bias": list(dict.fromkeys([*told, *bias]))}
        pages = self.stored if set(bias) <= {*told} else replace(self, settings=settings).stored
        path = folder.path / "part.parquet"
        seen: dict[str, int] = {}
        write_sessions(path, self._own(pages, seen), seen)
        layout = Layout("sessions", {})
        return ClickLog(path, layout, kind=self.kind, folder=folder, origin=self.given)

    def _own(self, pages: _Pages, seen: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """The part's pages, of which `seen` has the numbers of pages and clicks in the end."""
        assert self.rows is not None
        before = 0
        for batch in read_sessions(pages.path):
            own = batch.filter(pa.array(self.rows[before : before + len(batch)]))
            before += len(batch)
            clicks = pc.sum(own["clicks"].flatten()).as_py() or 0
            seen["pages"] = seen.get("pages", 0) + len(own)
            seen["clicks"] = seen.get("clicks", 0) + clicks
            yield own

    @property
    def pages(self) -> int:
        """Number of pages.

        Raises:
            InputError: the log is counted already, or a row of it is wrong.
        """
        return self.stored.number if self.rows is None else int(self.rows.sum())

    @property
    def seen(self) -> dict[str, int]:
        """What the reader counted, such as pages, clicks, and clicks that it left out.

        Of a part of a log, its pages and clicks only.
        """
        if self.rows is None:
            return seen_in(self.stored.path)
        seen: dict[str, int] = {}
        for _ in self._own(self.stored, seen):
            pass
        return seen

    @cached_property
    def stored(self) -> _Pages:
        """The pages of the whole source, read and checked once."""
        folder = Folder()
        path = folder.path / "sessions.parquet"
        number = to_sessions(self.source, path, **self.reading())
        longest, before, clicks, shown, firsts = 0, 0, 0, 0, 0
        for batch in read_sessions(path):
            lengths = batch["documents"].value_lengths().to_numpy()
            wrong = np.flatnonzero((lengths < 1) | (lengths > MOST_POSITIONS))
            if len(wrong):
                raise InputError(
                    f"page {before + wrong[0] + 1}: it shows {lengths[wrong[0]]} documents",
                    path=self.source,
                    field="documents",
                    expected=f"1 to {MOST_POSITIONS}",
                )
            longest, before = max(longest, int(lengths.max(initial=0))), before + len(batch)
            clicks += pc.sum(batch["clicks"].flatten()).as_py() or 0
            shown += int(lengths.sum())
            firsts += pc.sum(pc.list_element(batch["clicks"], 0)).as_py() or 0
        if not number:
            raise InputError("the log is empty", path=self.source)
        return _Pages(path, number, longest, clicks, (firsts / number, clicks / shown), folder)

    def split(self, shares: Mapping[str, float], *, seed: int = 0) -> dict[str, ClickLog]:
        """Divide the pages at random.

        Args:
            shares: of each part, such as {"train": 0.8, "test": 0.2}; they add up to 1.
            seed: divides the log.

        Returns:
            a log per part.

        Raises:
            InputError: a share is out of range, a part would have no page, the log is counted
                already, or a row of it is wrong.

        Example:
            >>> pages = {"documents": [["a"], ["b"]], "clicks": [[1], [0]]}
            >>> parts = read_log(pa.table(pages)).split({"train": 0.5, "test": 0.5})
            >>> parts["train"].pages, parts["test"].pages
            (1, 1)
        """
        for share in shares.values():
            check_range(share, field="shares", low=0.001, high=0.999)
        if abs(sum(shares.values()) - 1) > 1e-9:
            raise InputError(
                f"they add up to {sum(shares.values()):g}", field="shares", expected="1"
            )
        from twotowers.logs.observed_pages import divide  # here: a log is counted without it

        number = self.stored.number
        own = np.arange(number) if self.rows is None else np.flatnonzero(self.rows)
        parts: dict[str, ClickLog] = {}
        for name, members in divide(len(own), shares, seed=seed, path=str(self.source)).items():
            rows = np.zeros(number, bool)
            rows[own[members]] = True
            parts[name] = self.part(rows)
        return parts

    def part(self, rows: np.ndarray) -> ClickLog:
        """Some pages of a whole log, of which nothing is read again.

        Args:
            rows: [pages] bool, which ones.
        """
        part = replace(self, rows=rows)
        part.__dict__["stored"] = self.stored
        return part

    def count(
        self, out: str | Path | None = None, *, bias: Sequence[str] = (), memory: str = MEMORY
    ) -> Native:
        """Impressions and clicks of each query, document and position.

        Args:
            out: a parquet file to write, of any size; None to get a frame.
            bias: further columns that tell cells apart.
            memory: memory limit of counting. What exceeds it goes to disk.

        Returns:
            a frame with the columns query, document, position (from 1), those of `bias`,
            impressions and clicks; or the number of cells, if they are written.

        Raises:
            InputError: a row of the log is wrong, or the file cannot be written.

        Example:
            >>> pages = {"documents": [["a", "b"], ["a"]], "clicks": [[1, 0], [1]]}
            >>> read_log(pa.table(pages)).count()["impressions"].to_pylist()
            [2, 1]
        """
        if out is not None:
            self.check_out(out, ".parquet")
            log = self.whole(bias)
            return to_cells(log.source, out, memory=memory, **log.reading(bias))
        return native(self.cells(bias, memory=memory), self.kind)

    def cells(self, bias: Sequence[str] = (), **how: Any) -> pa.Table:
        """What `count` counts, as an Arrow table."""
        folder, log = Folder(), self.whole(bias)
        path = folder.path / "cells.parquet"
        to_cells(log.source, path, **log.reading(bias), **how)
        table = pq.read_table(path).replace_schema_metadata()
        split = table.column_names.index("split")
        return table.select(table.column_names[split + 1 :])


def read_log(
    source: object,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    session: str | None = None,
    query: str | None = None,
    document: str | None = None,
    position: str | None = None,
    clicks: str | None = None,
    impressions: str | None = None,
    documents: str | None = None,
    **settings: Any,
) -> ClickLog:
    """A click log in any of the known formats. docs/logs.md describes them.

    The format and the columns are recognised by the usual names of columns, as far as they are not
    told. `print(log)` says what the log was taken for.

    Args:
        source: a file (.csv, .tsv, .parquet, .feather, perhaps .gz; text in format wscd or
            yandex; JSON in format ubi), a pattern of files such as `part-*.parquet`, a folder of
            such parts; or a frame of pandas, polars, Arrow or DuckDB.
        format: "rows" (a row per shown document), "pages" (a row per result page, with lists of
            documents and clicks), "cells" (counted), "ubi", "vectors", "sessions", "baidu",
            "yandex" or "wscd".
        columns: our name -> the source's, for any column.
        session: the column of the result page. Its rows follow each other.
        query, document, position, clicks, impressions: the columns of these. Without a session and
            without impressions, a row is one impression.
        documents: the column of lists of documents.
        settings: of the format's reader, such as `first=0` or `gaps="close"`; see docs/logs.md. A
            setting of the name `clicks` is told as `listed`. `bias` has bias features whose names
            `columns` gives.

    Raises:
        InputError: the source does not exist or is no log, or a column or a setting is unknown.

    Example:
        >>> log = read_log(pa.table({"qid": [7, 7], "sku": ["a", "b"], "rank": [1, 2],
        ...                          "click": [0, 1], "sid": [1, 1]}))
        >>> print(log.layout)
        format 'rows', with session in 'sid', query in 'qid', document in 'sku', position in \
'rank', clicks in 'click'
        >>> log.pages
        1
    """
    told = {
        "session": session, "query": query, "document": document, "position": position,
        "clicks": clicks, "impressions": impressions, "documents": documents,
    }  # fmt: skip
    named = {**(columns or {}), **{ours: name for ours, name in told.items() if name is not None}}
    if "listed" in settings:
        settings["clicks"] = settings.pop("listed")
    if isinstance(source, Trained):
        expected = f"a log: {OF_CLICKS} or a file or a frame"
        raise InputError(f"{source!r} was given", field="log", expected=expected)
    path, kind = source_of(source)
    path = parts_of(path)
    layout = recognised(path, format=format, columns=named)
    log = ClickLog(path, layout, {k: v for k, v in settings.items() if v is not None}, kind)
    open_log(path, **log.reading())  # Names and settings are checked at once.
    return log


def check_out(
    source: str | Source, out: str | Path, *endings: str, beside: Sequence[str | Path] = ()
) -> None:
    """Raise InputError if files cannot be written there, or would replace one of a log's.

    Args:
        source: the log, as it was given.
        out: the file to write.
        endings: those that it may have; none for any.
        beside: files that are written with it.
    """
    files = parts_of(source if isinstance(source, Frame) else Path(source))
    check_target(out, files, *endings)
    for each in beside:
        check_target(each, files)


def no_clicks(log: ClickLog) -> InputError:
    """The error of a log that tells nothing, for no document was clicked."""
    return InputError(
        "no document was clicked", path=log.source, field="clicks", expected="a log with clicks"
    )


def as_log(given: object) -> ClickLog:
    """The log itself, or `read_log` of what was given."""
    return given if isinstance(given, ClickLog) else read_log(given)


def check_pages(log: ClickLog) -> None:
    """Raise InputError for a log that is counted already."""
    if log.counted:
        raise InputError(
            "this log is counted, so its pages are not known",
            path=log.source,
            field="log",
            expected="a log of pages: with a session, or with lists of documents",
        )

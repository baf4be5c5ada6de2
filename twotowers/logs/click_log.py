"""Click logs, as they are given: a file, many files or a frame, in any format and layout."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError, check_choice, check_names, check_range
from twotowers.files.artefacts import Frame, Source, files_of
from twotowers.files.batches import is_text_file, set_encoding
from twotowers.files.progress import doing
from twotowers.logs.counted import CELL, MEMORY, Counts, Mixed
from twotowers.logs.frames import PANDAS, source_of
from twotowers.logs.layouts import Layout, all_wrong, parts_of, recognised
from twotowers.logs.log import Block, Further, Log
from twotowers.logs.numbering import Ids
from twotowers.logs.opening import FORMATS, open_log
from twotowers.logs.sessions import OWN, TIME, Stream, Unsorted
from twotowers.logs.strays import left_out
from twotowers.logs.unusual import unusual
from twotowers.randomness import stream

BOTS = ("keep", "drop")
"""What to do with users, or pages, that are out of line."""
KNOWN = (*CELL, "last_click")
"""Columns that are read, or follow from those that are read, without being asked for."""
MOST_POSITIONS = 1000
"""The longest page. The memory of a fit grows with the square of its positions."""
OF_CLICKS = "`clicks.log()`, the log of simulated clicks,"


class Trained:
    """Base of the clicks of `simulate`, and of the towers that are fitted to them by training.

    Their modules import JAX, and are not imported for anything else. None of them is a log.
    """


@dataclass(eq=False)
class ClickLog(Log):
    """A log as it is given: a file, many files or a frame. It is read when it is first needed.

    `read_log` makes one.

    Attributes:
        source: what to read: a path, a pattern of paths, or a frame.
        layout: its format, and the columns of the file behind our names.
        settings: of the format's reader.
        kind: the library of the frames that answers come in.
        rows: [rows] which pages of the source are meant, or how often each; None for all.
        memory: bytes to use. Pages beyond are in a file, and keys are sorted in portions.
        ordered: whether the pages of the source are known to be in the order of time.
        bots: "drop" leaves out users, or pages, out of line (`twotowers.logs.unusual`).
        typed: the log as commands take it, a path and options.
    """

    source: Source
    layout: Layout
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = PANDAS
    rows: np.ndarray | None = None
    memory: int = MEMORY
    ordered: bool = False
    bots: str = BOTS[0]
    typed: str = "LOG"
    _held: Log | Counts | None = None
    _stream: Stream | None = None
    _checked: bool = False
    _further: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        some = "" if self.rows is None else f", {self.rows.sum():,} of its pages"
        return f"<click log of {self.source}: {self.layout}{some}>"

    @property
    def counted(self) -> bool:
        """Whether it has counts of query, document and position only, and no pages."""
        return FORMATS[self.layout.format].counted

    def reading(self, bias: Sequence[str] = ()) -> dict[str, Any]:
        """The format, the settings of its reader, and the names of columns.

        Args:
            bias: bias features to read, besides those that `read_log` was given.
        """
        settings = {name: each for name, each in self.settings.items() if name != "bias"}
        if any(name.startswith(OWN) for name in bias):
            settings["keys"] = True
            bias = [name for name in bias if not name.startswith(OWN)]
        wanted = list(dict.fromkeys([*self.settings.get("bias", ()), *bias]))
        if wanted and "bias" in FORMATS[self.layout.format].settings:
            settings["bias"] = wanted
        if self.layout.columns:
            time = {"time": self.layout.time} if TIME in wanted and self.layout.time else {}
            settings["columns"] = {**self.layout.columns, **time}
        return {"format": self.layout.format, **settings}

    def holding(self, columns: Iterable[str] = ()) -> Any:
        """The log as it was read, with some further columns: a `Log`, or `Counts`. It is kept."""
        missing = {*columns} - {*KNOWN}
        missing -= set() if self._held is None else {*self._held.ids}
        if self._held is None or missing:
            self._further |= missing
            self._held = self._read(sorted(self._further))
        return self._held

    def _read(self, columns: Sequence[str]) -> Any:
        doing(f"reading {self.source}")
        stream, self._stream = self._stream, None
        if stream is None or columns:
            stream = open_log(self.source, **self.reading(columns))
        texts = FORMATS[self.layout.format].texts or is_text_file(files_of(self.source)[0])
        how = {"texts": texts, "memory": self.memory}
        kind: Any = Counts if self.counted else Log
        try:
            try:
                held = kind.of_batches(stream.batches, **how)
            except Unsorted:
                stream = open_log(self.source, **self.reading(columns), together=False)
                held = kind.of_batches(stream.batches, **how)
        except Mixed as error:
            raise InputError(error.found, path=self.source, expected=error.expected) from None
        except InputError as error:
            if error.settings:
                error = all_wrong(error, self.source, self.layout.columns, self.settings)
            raise error from None
        doing("counting, and fitting")
        for name in columns:
            check_choice(name, sorted({*held.ids} - {*KNOWN}), field="bias")
        held.seen, held.kind = stream.seen, self.kind
        self.ordered |= stream.ordered
        if self.bots == "drop":
            check_pages(self)
            whole, held = held, held.part(~unusual(held).rows)
            held.seen = {**whole.seen, "pages_of_bots": whole.pages - held.pages, **held.seen}
        return held if self.rows is None else held.part(self.rows)

    @property
    def blocks(self) -> Sequence[Block]:  # pyrefly: ignore[bad-override]
        """The pages, some at a time. Each has a document or more."""
        check_pages(self)
        held = self.holding()
        if not self._checked:
            _check_lengths(held, self.source)
            self._checked = True
        return held.blocks

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The pages with the values of the log, some thousands at a time."""
        check_pages(self)
        yield from self.holding().batches()

    @property
    def longest(self) -> int:
        """The most documents of a page."""
        return self.ids["position"].size if self.blocks else 0

    @property
    def ids(self) -> Mapping[str, Ids]:  # pyrefly: ignore[bad-override]
        """Column -> what its numbers stand for."""
        return self.holding().ids

    @property
    def seen(self) -> Mapping[str, int]:  # pyrefly: ignore[bad-override]
        """What the reader counted, such as pages, clicks, and clicks that it left out.

        Of a part of a log, its pages and clicks only.
        """
        return self.holding().seen

    def portions(self, by: Sequence[str] = CELL, **further: Further) -> Iterator[Counts]:
        """What `count` gives, some rows at a time."""
        return self.holding({*by} - {*further}).portions(by, **further)

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
        # Here, because a log is counted without it.
        from twotowers.logs.observed_pages import check_parts, divide

        if self.times is not None:
            times = stream("observed pages", seed).multinomial(self.times, [*shares.values()]).T
            parts = dict(zip(shares, times, strict=True))
            own = {name: rows.nonzero()[0] for name, rows in parts.items()}
            check_parts(own, self.pages, self.source)
        else:
            divided = divide(self.pages, shares, seed=seed, path=str(self.source)).items()
            parts = {name: np.bincount(own, minlength=self.pages) > 0 for name, own in divided}
        return {name: self.part(rows) for name, rows in parts.items()}

    def part(self, rows: np.ndarray) -> ClickLog:
        """Some of the pages, of which nothing is read again.

        Args:
            rows: [rows] bool, which ones; or how often each is meant.
        """
        own = rows
        if self.rows is not None:
            own, kept = np.zeros(len(self.rows), np.result_type(self.rows, rows)), self.rows > 0
            own[kept] = self.rows[kept] * rows if rows.dtype == bool else rows
        return replace(self, rows=own, _held=self.holding().part(rows))

    def closed(self) -> ClickLog:
        """The log with the documents of each page at the positions 1, 2 and so on."""
        return replace(self, _held=self.holding().closed()) if self.gaps else self


def read_log(
    source: object,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    session: str | None = None,
    page: str | Sequence[str] | None = None,
    query: str | None = None,
    document: str | None = None,
    position: str | None = None,
    clicks: str | None = None,
    impressions: str | None = None,
    documents: str | None = None,
    memory: str = "4GB",
    ordered: bool = False,
    encoding: str | None = None,
    bots: str = BOTS[0],
    **settings: Any,
) -> ClickLog:
    """A click log in any of the known formats. docs/logs.md describes them.

    The format and the columns are recognised by the usual names of columns, as far as they are not
    given. `print(log)` says what the log was taken for.

    Args:
        source: a file (.csv, .tsv, .parquet, .feather, perhaps .gz; text in format wscd or
            yandex; JSON in format ubi), a pattern of files such as `part-*.parquet`, a folder of
            such parts; or a frame of pandas, polars, Arrow or DuckDB.
        format: "rows" (a row per shown document), "pages" (a row per result page, with lists of
            documents and clicks), "cells" (counted), "ubi", "vectors", "sessions", "baidu",
            "yandex" or "wscd".
        columns: our name -> the source's, for any column.
        session: the column of the result page.
        page: instead, columns that together tell pages apart, such as a visit and the query.
        query, document, position, clicks, impressions: the columns of these. Without a session and
            without impressions, a row is one impression.
        documents: the column of lists of documents.
        memory: to use, about. What exceeds it is in a file meanwhile.
        ordered: whether pages are in the order of time. A column of times, such as
            `columns={"time": "ts"}`, says it better.
        encoding: of csv files that are not in UTF-8, such as "latin-1".
        bots: "drop" leaves out users whose clicks are out of line (`twotowers diagnose` names
            them), and, if users are not known, pages; "keep" keeps them.
        settings: of the format's reader, such as `first=0` or `gaps="close"`; see docs/logs.md. A
            setting of the name `clicks` is given as `listed`. `bias` has bias features whose names
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
    page = [page] if isinstance(page, str) else check_names(page, field="page") if page else []
    if len(page) > 1:
        settings["page"] = page
    given_names = {
        "session": page[0] if page else session, "query": query, "document": document,
        "position": position, "clicks": clicks, "impressions": impressions, "documents": documents,
    }  # fmt: skip
    named = {
        **(columns or {}),
        **{ours: name for ours, name in given_names.items() if name is not None},
    }
    if "listed" in settings:
        settings["clicks"] = settings.pop("listed")
    if isinstance(source, Trained):
        expected = f"a log: {OF_CLICKS} or a file or a frame"
        raise InputError(f"{source!r} was given", field="log", expected=expected)
    check_choice(bots, BOTS, field="bots")
    path, kind = source_of(source)
    path = parts_of(path)
    for file in files_of(path):
        set_encoding(file, encoding)
    layout = recognised(path, format=format, columns=named)
    settings = {name: value for name, value in settings.items() if value is not None}
    how: dict[str, Any] = {"memory": bytes_of(memory), "ordered": ordered, "bots": bots}
    if not isinstance(path, Frame):
        given = {"format": format, **settings, **how, "encoding": encoding, "memory": None}
        own = {ours: name for ours, name in named.items() if ours != "session" or len(page) < 2}
        how["typed"] = _typed(source, given, own)
    log = ClickLog(path, layout, settings, kind, **how)
    log._stream = open_log(path, **log.reading())  # Names and settings are checked at once.
    return log


def _typed(source: object, given: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """A path and options, as a shell takes them.

    >>> _typed("my log.csv", {"first": 0, "ordered": True, "bots": "keep"}, {"query": "q"})
    "'my log.csv' --column query=q --first 0 --ordered"
    """
    words = [str(source)]
    for ours, theirs in columns.items():
        words += ["--column", f"{ours}={theirs}"]
    for name, value in given.items():
        if value is None or value is False or value == BOTS[0] or name == "bias":
            continue  # Commands have an option of their own for bias.
        words.append(f"--{name}")
        if value is not True:
            words += [str(value)] if isinstance(value, str | int) else map(str, value)
    return shlex.join(words)


def log_of_format(source: Source, format: str, **settings: Any) -> ClickLog:
    """A log whose format and columns are known: settings of its reader, and `columns`."""
    columns = settings.pop("columns", None) or {}
    settings = {name: value for name, value in settings.items() if value is not None}
    return ClickLog(source, Layout(format, columns), settings)


def check_clicks(log: ClickLog, impressions: float, clicks: float) -> None:
    """Raise InputError for a log that tells nothing: no document was clicked, or every one."""
    if not clicks:
        lost = [each for each in left_out(log.seen) if each.startswith("clicks")]
        problem, expected = "no document was clicked", "a log with clicks"
        if lost:
            problem = f"no click is on a document of its page; {'; '.join(lost)}"
            expected = "clicks that name documents, and queries, as their pages do"
    elif clicks == impressions:
        problem = f"each of the {impressions:,.0f} impressions was clicked"
        expected = "what was shown and not clicked, too: without it clicks tell nothing"
    else:
        return
    raise InputError(problem, path=log.source, field="clicks", expected=expected)


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


def _check_lengths(log: Log, source: Source) -> None:
    """Raise InputError if the log has no page, or if a page has no document or too many."""
    for each in log.blocks:
        wrong = np.flatnonzero((each.lengths < 1) | (each.lengths > MOST_POSITIONS))
        if len(wrong):
            raise InputError(
                f"page {each.before + wrong[0] + 1}: it shows {each.lengths[wrong[0]]} documents",
                path=source,
                field="documents",
                expected=f"1 to {MOST_POSITIONS}",
            )
    if not log.pages:
        raise InputError("the log is empty", path=source)


def bytes_of(memory: str) -> int:
    """A size such as '2GB', in bytes."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b", memory.strip().lower())
    if match is None:
        raise InputError(f"{memory!r}", field="memory", expected="a size such as 2GB")
    return max(int(float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")), 1)

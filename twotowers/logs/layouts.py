"""What a click log is, as its file shows: the format, and the column behind each of our names.

A table is recognised by the names of its columns, any other file by its first line. The answer says
what it took the log for, so that a user can contradict it.

Columns whose names say nothing are recognised by their first values: clicks are 0 and 1, positions
rise by one from 0 or 1, a session is a column whose values do not return, and a query has fewer
values than a document.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError, check_choice, nearest
from twotowers.files.artefacts import Frame, Source, files_of
from twotowers.files.batches import (
    PACKED,
    column_names,
    is_json,
    is_table,
    opened_text,
    read_batches,
)
from twotowers.logs.sessions import RESERVED, check_free

ROWS = 2000
"""Rows that are looked at."""
VISIT = 0.05
"""Share of the sessions with several queries, above which a session is taken for a visit."""
USUAL: Mapping[str, tuple[str, ...]] = {
    "session": (
        "session", "session_id", "sessionid", "sid", "search_id", "page_id", "serp_id",
        "request_id", "visit_id", "visit",
    ),
    "query": (
        "query", "query_id", "qid", "q", "search_term", "search_phrase", "keyword", "keywords",
    ),
    "document": (
        "document", "document_id", "doc", "doc_id", "docid", "url", "url_id", "item", "item_id",
        "product", "product_id", "sku", "asin",
    ),
    "position": ("position", "pos", "rank", "slot"),
    "clicks": ("clicks", "click", "clicked", "is_click", "is_clicked", "click_count"),
    "impressions": ("impressions", "impression_count", "views", "exposures"),
    "documents": ("documents", "document_ids", "docs", "doc_ids", "query_doc_ids", "urls", "items"),
    "features": ("query_doc_features", "features"),
    "user": (
        "user", "user_id", "uid", "client_id", "visitor", "visitor_id", "customer_id",
        "user_pseudo_id",
    ),
    "page_count": ("page_count",),
}  # fmt: skip
"""Our names -> the names that columns usually have, the most usual first. Neither case matters, nor
what stands between words: `Search ID` and `searchId` are `search_id`."""

SEARCHED = "quer|search|phrase|term|keyword"
"""Part of the names of columns of queries."""

TABLES = (
    ("pages", ("documents", "clicks")),
    ("vectors", ("features", "clicks")),
    ("rows", ("session", "query", "document", "position", "clicks")),
    ("cells", ("query", "document", "position", "impressions", "clicks")),
    ("rows", ("session", "query", "document", "clicks")),
    ("cells", ("query", "document", "position", "clicks")),
)
"""Formats, and columns by our names. A table is of the first format whose columns it has: with
sessions, it is not counted."""
RANKED = ("session", "position")
"""One of these tells where documents were shown."""
OPTIONAL = {
    "pages": ("query", "user", "page_count"),
    "vectors": ("query", "user"),
    "rows": ("user",),
}
"""Columns that are read if they are there."""
TIMES = ("time", "timestamp", "ts", "datetime", "date_time", "event_time", "created_at")
"""Usual names of the time of a page. It is read where the order of pages matters."""
UBI = ({"query_id", "action_name"}, {"query_id", "query_response_hit_ids"})
"""The columns of UBI's events and of its queries."""
UBI_KEYS = {
    "action_name", "user_query", "query_response_hit_ids", "query_response_objects_ids", "doc_ids",
    "hits", "response", "_source", "index", "create",
}  # fmt: skip
"""Of JSON in UBI, the first object has one of these: a record, what wraps it, or a bulk request."""
SESSIONS = {"split", "query", "documents", "clicks"}
"""The columns of our own sessions file."""


@dataclass(frozen=True)
class Layout:
    """How a log is laid out: its format, and our names of columns -> the file's.

    `time` is the column of the time of a page, if there is one.
    """

    format: str
    columns: Mapping[str, str]
    time: str | None = None

    def __str__(self) -> str:
        """In words, with the columns whose names are not ours."""
        others = ((ours, theirs) for ours, theirs in self.columns.items() if ours != theirs)
        where = ", ".join(f"{ours} in {theirs!r}" for ours, theirs in others)
        order = self.format == "rows" and self.columns and "position" not in self.columns
        parts = [f"with {where}"] * bool(where) + ["positions by the order of rows"] * bool(order)
        if number := self.columns.get("page_count"):
            parts.append(f"a row for so many pages as {number!r} says")
        return ", ".join([f"format {self.format!r}", *parts])


def parts_of(path: Source) -> Source:
    """The pattern of a folder's tables, or of its JSON if it has none; anything else as it is.

    If it has no files, those in its folders count, as in partitions of Hive.
    """
    if isinstance(path, Frame) or not Path(path).is_dir():
        return path
    # Hidden files and those of Spark, such as _SUCCESS, are no parts.
    files, folder = _files(Path(path).iterdir()), Path(path)
    if not files:
        files, folder = _files(Path(path).rglob("*")), Path(escape(str(path))) / "**"
    parts = [each for each in files if is_table(each)] or [each for each in files if is_json(each)]
    endings = dict.fromkeys(map(_ending, parts))
    if len(endings) != 1:
        kinds = ", ".join(endings) or "none"
        raise InputError(
            f"the folder holds tables of these kinds: {kinds}",
            path=path,
            expected="parts of one kind, such as .parquet or .csv.gz",
        )
    return folder / f"[!._]*{next(iter(endings))}"


def _files(found: Iterable[Path]) -> list[Path]:
    return [each for each in sorted(found) if each.name[0] not in "._" and each.is_file()]


def _ending(path: Path) -> str:
    return "".join(path.suffixes[-2:] if path.suffix in PACKED else path.suffixes[-1:])


def recognised(
    path: Source, *, format: str | None = None, columns: Mapping[str, str] | None = None
) -> Layout:
    """The layout of a log; `columns`, our name -> the file's, as far as they are known."""
    given = dict(columns or {})
    first = files_of(path)[0]
    # Readers of other formats know their columns, if there are any.
    known = format not in (None, *dict(TABLES)) and not given
    if known or not (is_table(first) or (is_json(first) and _is_rows(first))):
        return Layout(format or _of_text(first), given)
    names = column_names(first)
    ours = set(names) >= SESSIONS and "page_count" not in usual(names)  # Ours count no pages.
    if format is None and ours and not given and not isinstance(first, Frame):
        return Layout("sessions", {})
    for theirs in given.values():
        if theirs not in names:
            expected = nearest(theirs, names)
            raise InputError(f"there is no column {theirs!r}", path=first, expected=expected)
    known = {**usual(names), **given}
    for name, wanted in TABLES:
        if format in (None, name) and set(wanted) <= set(known):
            own = [*wanted, *(each for each in OPTIONAL.get(name, ()) if each in known)]
            read = {ours: known[ours] for ours in own} | given
            if name not in ("rows", "pages"):
                return Layout(name, read)
            time = read.pop("time", None) or known.get("time")
            return Layout(name, read, None if time in read.values() else time)
    if format is None and any(columns <= set(names) for columns in UBI):
        return Layout("ubi", given)
    if format is not None:  # Its reader says what is missing, by its own names.
        return Layout(format, given)
    raise _unknown(first, names, known)


def _unknown(path: Source, names: Sequence[str], known: Mapping[str, str]) -> InputError:
    """The error of a table that lacks columns of a log, with those that seem to be meant."""
    needed = ("documents", "clicks") if "documents" in known else ("query", "document", "clicks")
    lacking = [name for name in needed if name not in known]
    if "document" in needed and not {*RANKED} & {*known}:
        lacking += RANKED
    columns = guessed(path, names, known) if "document" in needed else {}
    columns = {ours: name for ours, name in columns.items() if ours in (*lacking, *RANKED)}
    settings: dict[str, object] = {}
    if {*lacking} <= {*columns}:
        settings = {"columns": columns, **settings_of(path, {**known, **columns}, {})}
    usual = "; ".join(f"{name}: {', '.join(USUAL[name][:4])}, ..." for name in lacking)
    return InputError(
        f"no column is named as {' or '.join(lacking)}; the columns are {', '.join(names)}",
        path=path,
        expected=f"columns of such names ({usual}); `columns` gives others",
        settings=settings,
    )


def named(
    path: Source,
    required: Sequence[str],
    columns: Mapping[str, str] | None,
    further: Sequence[str],
    optional: Sequence[str],
) -> dict[str, str]:
    """The column of a file for each of ours, as far as given or recognised by usual names.

    Optional ones are read if they exist; `further` are bias features.
    """
    present, given, ours = column_names(path), dict(columns or {}), {*required, *optional}
    check_free(further, {*RESERVED, *ours})
    for name in given:
        check_choice(name, {*ours, *further}, path=path, field="columns", what="not read")
    asked = given | {name: given.get(name, name) for name in further}
    for name, theirs in asked.items():
        if theirs not in present:
            raise InputError(
                f"there is no column {theirs!r}",
                path=path,
                field=name,
                expected=nearest(theirs, present),
            )
    # A column with another use, such as positions whose gaps are kept, has it under its own name
    # only. Of splits and users there is no usual name.
    free = [name for name in present if name not in {*given.values(), *further}]
    known = {name: name for name in present} | usual(free)
    known |= {name: name for name in ("split", "user")} | given
    names = {name: known[name] for name in (*required, *optional) if known.get(name) in present}
    for lack in (name for name in required if name not in names):
        raise InputError(
            f"the columns are {', '.join(present)}; none is {' or '.join(USUAL.get(lack, [lack]))}",
            path=path,
            expected=f"{', '.join(required)}; or `columns` with the names in the file",
        )
    return names | {name: asked[name] for name in further}


def usual(names: Iterable[str]) -> dict[str, str]:
    """Our names -> the file's, of all columns with usual names."""
    by_name = {_letters(name): name for name in reversed(list(names))}
    known = {ours: map(_letters, own) for ours, own in {**USUAL, "time": TIMES}.items()}
    matches = {
        ours: next((name for name in own if name in by_name), "") for ours, own in known.items()
    }
    return {ours: by_name[name] for ours, name in matches.items() if name}


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _of_text(path: Path) -> str:
    """The format of a text file, by its first line."""
    with opened_text(path, encoding="utf-8") as file:
        line = file.readline(10_000)
    if line.lstrip()[:1] in ("{", "["):
        _check_ubi(path)
        return "ubi"
    columns = line.split("\t")
    if len(columns) > 3 and columns[2] in ("Q", "C"):
        return "wscd"
    if len(columns) > 1 and " :" in columns[1] and "_" in columns[0]:
        return "yandex"
    if len(usual(re.split(r"[,;\t|]", line))) > 2:
        problem = f"the first line is that of a table: {line.strip()[:200]}"
        raise InputError(
            problem, path=path, expected="a name that ends in .csv, or .csv.gz if packed"
        )
    raise InputError(
        f"{line.strip()[:60]!r} is the first line of no log that we know",
        path=path,
        expected="a table (.csv, .tsv, .parquet, .feather), or a log in format wscd, yandex or ubi",
    )


def _first_object(path: Path) -> object:
    """The first value of a file of JSON; None if it is longer than some thousand lines."""
    with opened_text(path, encoding="utf-8") as file:
        text = file.read(100_000)
    try:
        return json.JSONDecoder().raw_decode(text.lstrip("[ \t\r\n\ufeff"))[0]
    except ValueError:
        return None  # Its reader says what is wrong, or reads an object that is longer.


def _is_rows(path: Path) -> bool:
    """Whether JSON has the rows of a table, an object each, rather than records of UBI."""
    first = _first_object(path)
    if not isinstance(first, dict) or {"action_name", "query_response_hit_ids"} & {*first}:
        return False
    known = {*usual(first)}
    return any(set(wanted) <= known for _, wanted in TABLES)


def _check_ubi(path: Path) -> None:
    """Raise InputError if the first object of JSON cannot be a record of UBI."""
    keys = _first_object(path)
    if keys is not None and not (isinstance(keys, dict) and UBI_KEYS & set(keys)):
        content = (
            f"has the keys {', '.join(keys)}" if isinstance(keys, dict) else f"is {keys!r:.60}"
        )
        raise InputError(
            f"the first object {content}",
            path=path,
            expected="records of UBI; or those of a table, such as session, query, document, "
            "position, clicks",
        )


def guessed(path: Source, names: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Our name -> a column of a table, for those of rows or cells that are not known.

    Example:
        >>> table = pa.table({"asked": [7, 7, 8, 8], "shop item": [*"abcd"], "at": [1, 2, 1, 2],
        ...                   "taps": [0, 1, 0, 0]})
        >>> guessed(Frame(table), table.column_names, {})
        {'clicks': 'taps', 'position': 'at', 'query': 'asked', 'document': 'shop item'}
    """
    rows = first_rows(path, names)
    numbers = {name: pd.to_numeric(rows[name], errors="coerce") for name in names}
    free = [name for name in names if name not in known.values() and rows[name].nunique() > 1]
    guesses: dict[str, str] = {}

    def take(ours: str, good: list[str]) -> None:
        if ours not in known and good:
            guesses[ours] = good[0]
            free.remove(good[0])

    flags = {"0", "1", "0.0", "1.0", "true", "false"}
    take("clicks", [each for each in free if {*rows[each].astype(str).str.lower()} <= flags])
    steps = {name: (each.diff() == 1).mean() for name, each in numbers.items()}
    ranks = [name for name in free if numbers[name].min() in (0, 1) and steps[name] > 0.3]
    take("position", [name for name in ranks if rows[name].nunique() <= len(rows) / 2])
    distinct = {name: rows[name].nunique() for name in free}
    runs = {name: (rows[name] != rows[name].shift()).sum() for name in free}
    if "impressions" not in known:
        once = [name for name in free if runs[name] == distinct[name] < len(rows)]
        others = sum(name not in known for name in ("query", "document"))
        once = once[: len(once) * (len(free) > others)]
        take("session", sorted(once, key=distinct.__getitem__, reverse=True))
    rest = [name for name in free if not (numbers[name] % 1 > 0).any()]
    few = len(rows) / 500  # A column of so few values is a device, a language, ...
    take("query", sorted(rest, key=lambda name: (
        not re.search(SEARCHED, name, re.I), distinct[name] < few, runs[name]
    )))  # fmt: skip
    take("document", sorted((each for each in rest if each in free), key=distinct.__getitem__)[-1:])
    return guesses


def settings_of(
    path: Source, columns: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Settings that rows need beside those that they are read with: `page` and `first`.

    Example:
        >>> table = pa.table({"session": [1, 1], "query": ["a", "b"], "position": [0, 0]})
        >>> settings_of(Frame(table), {name: name for name in table.column_names}, {})
        {'page': ['session', 'query'], 'first': 0}
    """
    rows = first_rows(path, list(dict.fromkeys(columns.values())))
    needed: dict[str, Any] = {}
    session, query, position = (columns.get(each) for each in ("session", "query", "position"))
    if session and query and "page" not in settings:
        queries = rows.groupby(session)[query].nunique()
        if (queries > 1).mean() > VISIT:
            needed["page"] = [session, query]
    if position and "first" not in settings:
        needed |= {"first": 0} if pd.to_numeric(rows[position], errors="coerce").min() == 0 else {}
    return needed


def all_wrong(
    error: InputError, path: Source, columns: Mapping[str, str], settings: Mapping[str, Any]
) -> InputError:
    """The error with all other settings that the log needs, too; see `settings_of`."""
    more = settings_of(files_of(path)[0], columns, settings)
    words = {"page": "a session has several queries", "first": "positions count from 0"}
    further = (words[each] for each in more if each not in error.settings)
    message = "; ".join([error.message, *further])
    where = {"path": error.path, "field": error.field, "expected": error.expected}
    return InputError(message, **where, settings={**more, **error.settings})


def first_rows(path: Source, names: Sequence[str]) -> pd.DataFrame:
    """The first `ROWS` rows of some columns."""
    batch = next(iter(read_batches(path, names)), None)
    if batch is None:
        return pd.DataFrame(columns=list(names), dtype=str)
    table = pa.Table.from_batches([batch.slice(0, ROWS)])
    return table.replace_schema_metadata().to_pandas()

"""What is wrong with the layout of a table of rows, and the settings that would read it.

Columns whose names say nothing are recognised by their first values: clicks are 0 and 1, positions
rise by one from 0 or 1, a session is a column whose values do not return, and a query has fewer
values than a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.artefacts import files_of
from twotowers.files.batches import read_batches
from twotowers.files.frames import Source

ROWS = 2000
"""Rows that are looked at."""
VISIT = 0.05
"""Share of the sessions with several queries, above which a session is taken for a visit."""


def guessed(path: Source, names: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Our name -> a column of a table, for those of rows or cells that are not known.

    Args:
        path: the table.
        names: its columns.
        known: our names -> its columns, as far as they are known.

    Example:
        >>> table = pa.table({"asked": [7, 7, 8, 8], "shop item": [*"abcd"], "at": [1, 2, 1, 2],
        ...                   "taps": [0, 1, 0, 0]})
        >>> from twotowers.files.frames import Frame
        >>> guessed(Frame(table), table.column_names, {})
        {'clicks': 'taps', 'position': 'at', 'query': 'asked', 'document': 'shop item'}
    """
    rows = _first_rows(path, names)
    numbers = {name: pd.to_numeric(rows[name], errors="coerce") for name in names}
    free = [name for name in names if name not in known.values() and rows[name].nunique() > 1]
    found: dict[str, str] = {}

    def take(ours: str, good: list[str]) -> None:
        if ours not in known and good:
            found[ours] = good[0]
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
    take("query", sorted(rest, key=runs.__getitem__))
    take("document", sorted((each for each in rest if each in free), key=distinct.__getitem__)[-1:])
    return found


def settings_of(
    path: Source, columns: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Settings that rows need beside those that they are read with: `page` and `first`.

    Args:
        path: the table.
        columns: our names -> its columns.
        settings: of the reader, as far as they are given.

    Example:
        >>> table = pa.table({"session": [1, 1], "query": ["a", "b"], "position": [0, 0]})
        >>> from twotowers.files.frames import Frame
        >>> settings_of(Frame(table), {name: name for name in table.column_names}, {})
        {'page': ['session', 'query'], 'first': 0}
    """
    rows = _first_rows(path, list(dict.fromkeys(columns.values())))
    found: dict[str, Any] = {}
    session, query, position = (columns.get(each) for each in ("session", "query", "position"))
    if session and query and "page" not in settings:
        queries = rows.groupby(session)[query].nunique()
        if (queries > 1).mean() > VISIT:
            found["page"] = [session, query]
    if position and "first" not in settings:
        found |= {"first": 0} if pd.to_numeric(rows[position], errors="coerce").min() == 0 else {}
    return found


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


def _first_rows(path: Source, names: Sequence[str]) -> pd.DataFrame:
    batch = next(iter(read_batches(path, names)), None)
    if batch is None:
        return pd.DataFrame(columns=list(names), dtype=str)
    table = pa.Table.from_batches([batch.slice(0, ROWS)])
    return table.replace_schema_metadata().to_pandas()

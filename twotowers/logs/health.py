"""Is a click log sound? Counts of its pages and of its query-document pairs, by DuckDB.

Nothing here is an estimate: every number is a count of the log, so none has an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twotowers.files.artefacts import atomic
from twotowers.logs.warehouse import MEMORY, database, text

LATER = 0.2
"""The share of the pages, the last ones of the log, that are looked for in those before."""
COPIES = (2, 3)
"""How often a log may have been appended."""
COPIED = 0.05
"""Share of pages that are repeated at one distance, above which the log was appended twice."""

ALIKE = 0.25
"""Pages were copied if more than this share of the rankings that came twice was clicked alike. Only
rankings with several clicks count: two users hardly ever agree on those."""
NOISE = 6.0
"""Standard errors of the difference of two counts, beyond which it is no chance."""

PAGES = """
SELECT file_row_number AS row, query, documents, clicks,
    len(list_filter(clicks, lambda one: one)) AS clicked
FROM read_parquet({path}, file_row_number = true)
"""
SIZES = """
SELECT clicked, count(*) AS pages,
    count_if(len(list_distinct(documents)) < len(documents)) AS repeats
FROM pages GROUP BY ALL
"""
LATER_SEEN = """
WITH places AS (
    SELECT query, unnest(documents) AS document, row >= {cut} AS later FROM pages
), pairs AS (
    SELECT query, document, count_if(later) AS later, count_if(NOT later) AS before
    FROM places GROUP BY query, document
), queries AS (
    SELECT query, sum(later) AS later, sum(before) AS before FROM pairs GROUP BY query
)
SELECT (SELECT sum(later) FROM pairs),
    (SELECT coalesce(sum(later) FILTER (before = 0), 0) FROM pairs),
    (SELECT coalesce(sum(later) FILTER (before = 0), 0) FROM queries)
"""
HASHES = """
SELECT row, hash(query, documents, clicks) AS page, hash(query, documents) AS ranking,
    hash(query) AS query, clicked
FROM pages
"""
TWINS = """
SELECT count(*), coalesce(count_if(alike), 0) FROM (
    SELECT min(page) = max(page) AS alike FROM hashes
    GROUP BY ranking HAVING count(*) = 2 AND max(clicked) > 1
)
"""
LAG = """
SELECT lag FROM (SELECT row - lag(row) OVER (PARTITION BY page ORDER BY row) AS lag FROM hashes)
WHERE lag IS NOT NULL GROUP BY lag ORDER BY count(*) DESC, lag LIMIT 1
"""
AT_LAG = """
SELECT count(*) FROM hashes AS one JOIN hashes AS other
ON other.row = one.row + {lag} AND other.page = one.page
"""
BY_CHANCE = """
SELECT coalesce(sum((alike - 1) / (asked - 1)), 0)
FROM hashes AS one JOIN hashes AS other ON other.row = one.row + {lag} AND other.query = one.query
JOIN (SELECT page, count(*) AS alike FROM hashes GROUP BY page) AS pages ON pages.page = one.page
JOIN (SELECT query, count(*) AS asked FROM hashes GROUP BY query) AS queries
ON queries.query = one.query
"""
"""Pages that are alike at a distance if each query's pages come in any order."""
PAIRS = """
SELECT count(*) AS pairs, count(DISTINCT query) AS queries, coalesce(sum(shown), 0) AS impressions,
    coalesce(sum(clicked), 0) AS clicks,
    count_if(shown <= 3) AS thrice,
    count_if(one) AS one_position, count_if(clicked = 0) AS unclicked, min(first) AS first
FROM (
    SELECT query, document, sum(impressions) AS shown, sum(clicks) AS clicked,
        min(position) = max(position) AS one, min(position) AS first
    FROM read_parquet({path}) WHERE impressions > 0 GROUP BY query, document
)
"""
COMMON = """
SELECT gcd(impressions, clicks) AS divisor, count_if(clicks > 0) AS clicked
FROM read_parquet({path}) WHERE impressions > 0 GROUP BY divisor
"""
TELLING = 20
"""So many counts of clicks must be multiples of a number before that number says anything."""


@dataclass(frozen=True)
class Health:
    """Counts of a log.

    Attributes:
        pairs, queries: query-document pairs, and queries, that were shown.
        impressions, clicks: documents shown, and those clicked.
        thrice: pairs that were shown at most three times.
        one_position: pairs that were shown at one position only.
        unclicked: pairs that were never clicked.
        first: the smallest position.
        multiple: the largest number that divides all counts (`multiple`). It is 2 if the log was
            written twice, in whatever order.
        pages: result pages; the following are None, too, where they are not known.
        without, several: pages without a click, and with several.
        repeats: pages that show a document twice.
        later: impressions of the last fifth of the pages, in the order of the log; of them
        unseen_pairs, unseen_queries: those whose pair, or query, is not on the pages before.
        lag: how many pages further on the log repeats pages, if it does so at one distance.
        repeated: pages that are there again at that distance; 0 if no more than by chance.
        twins: rankings that were shown twice, and had several clicks on one of both pages; of them
        alike: those that had the same clicks both times.
    """

    pairs: int
    queries: int
    impressions: int
    clicks: int
    thrice: int
    one_position: int
    unclicked: int
    first: int
    multiple: int
    pages: int | None = None
    without: int | None = None
    several: int | None = None
    repeats: int | None = None
    later: int | None = None
    unseen_pairs: int | None = None
    unseen_queries: int | None = None
    lag: int | None = None
    repeated: int | None = None
    twins: int | None = None
    alike: int | None = None

    @property
    def copied(self) -> str:
        """How much of the log is there again, if it is so much that it was copied; else ''."""
        pages = self.pages or 0, self.lag, self.repeated or 0
        if told := _copied(*pages, self.twins or 0, self.alike or 0):
            return told
        return f"Every count is a multiple of {self.multiple}" if self.multiple > 1 else ""


def health(cells: str | Path, sessions: str | Path | None = None) -> Health:
    """Count what tells whether a log is sound.

    A log that was appended twice has each page again, half of the log later, and so it may
    otherwise: this looks for the distance at which most pages have an equal one before them. In a
    log that is sorted by query, and in one of few queries, many pages equal those nearby. So the
    pages count only if there are many more of them than at the next distance. Copies at no one
    distance, as in a log that was sorted since, show in rankings that came twice (`alike`).

    Args:
        cells: a cells file (`twotowers.logs.warehouse`).
        sessions: the sessions file (`twotowers.logs.sessions`); None for a counted log.

    Example:
        >>> import pyarrow as pa
        >>> from twotowers.logs.sessions import write_sessions
        >>> from twotowers.logs.warehouse import count_sessions
        >>> pages = {"split": ["log"] * 3, "query": [7, 7, 8], "documents": [[3, 1], [3], [4]],
        ...          "clicks": [[0, 1], [0], [0]]}
        >>> _ = write_sessions("pages.parquet", [pa.table(pages)])
        >>> _ = count_sessions("pages.parquet", "cells.parquet")
        >>> found = health("cells.parquet", "pages.parquet")
        >>> found.pairs, found.unclicked, found.without, found.unseen_queries
        (3, 2, 2, 1)
    """
    with database(cells, MEMORY, None) as connection:
        found = connection.execute(PAIRS.format(path=text(cells))).fetchnumpy()
        counts: dict[str, Any] = {name: int(values[0]) for name, values in found.items()}
        common = connection.execute(COMMON.format(path=text(cells))).fetchnumpy()
        counts["multiple"] = multiple(common["divisor"], common["clicked"].sum())
        if sessions is not None:
            statement = PAGES.format(path=text(sessions))
            connection.execute(f"CREATE TEMP VIEW pages AS {statement}")
            counts |= _of_pages(connection)
    return Health(**counts)


def multiple(counts: np.ndarray, telling: float) -> int:
    """The largest number that divides all counts of a log; 1 if fewer than TELLING are of clicks.

    It is 2 if the log was written twice. By chance, n counts of clicks are all even with a
    probability of about 2^-n.

    Args:
        counts: counts of impressions and clicks, or a divisor of both of each cell.
        telling: how many of them are clicks.

    Example:
        >>> multiple(np.array([4, 2, 0, 6]), telling=30), multiple(np.array([4, 3]), telling=30)
        (2, 1)
    """
    if telling < TELLING or (counts % 1 != 0).any():
        return 1
    return int(np.gcd.reduce(counts.astype(np.int64)))


def copied_lines(sessions: str | Path) -> Iterator[str]:
    """`Health.copied` of a log of pages as a question, if it was copied."""
    with database(sessions, MEMORY, None) as connection:
        connection.execute(f"CREATE TEMP VIEW pages AS {PAGES.format(path=text(sessions))}")
        pages = connection.execute("SELECT count(*) FROM pages").fetchone()[0]
        told = _copied(pages, *_repeated(connection, pages), *_twins(connection))
    if told:
        yield f"{told}: was the log appended, or written, more than once?"


def _copied(pages: int, lag: int | None, repeated: int, twins: int, alike: int) -> str:
    if lag and repeated > COPIED * pages:
        many = "" if lag == 1 else "s"
        return f"{repeated:,} of {pages:,} pages are there again, {lag:,} page{many} further on"
    if twins >= TELLING and alike > ALIKE * twins:
        return (
            f"Of {twins:,} rankings that were shown twice and had several clicks, {alike:,} were "
            "clicked alike both times"
        )
    return ""


def pages_with_gaps(sessions: str | Path, place: str) -> int:
    """The number of pages on which positions are missing, below the first or between others.

    Args:
        sessions: a sessions file.
        place: its bias feature with the positions of the log.
    """
    with database(sessions, MEMORY, None) as connection:
        found = connection.execute(
            f'SELECT count_if(list_max("{place}") > len(documents)) '
            f"FROM read_parquet({text(sessions)})"
        )
        return int(found.fetchone()[0])


def rename_place(cells: str | Path, place: str) -> None:
    """Let the positions of a cells file be those of a bias feature."""
    with atomic(cells) as temporary, database(cells, MEMORY, None) as connection:
        connection.execute(
            f'COPY (SELECT * EXCLUDE ("{place}") REPLACE ("{place}"::INTEGER AS position) '
            f"FROM read_parquet({text(cells)})) TO {text(temporary)} (FORMAT parquet)"
        )


def _of_pages(connection) -> dict[str, int | None]:
    sizes = connection.execute(SIZES).fetchnumpy()
    pages, clicked = sizes["pages"], sizes["clicked"]
    number = int(pages.sum())
    cut = number - round(LATER * number)
    later, unseen, unknown = connection.execute(LATER_SEEN.format(cut=cut)).fetchone()
    lag, repeated = _repeated(connection, number)
    twins, alike = _twins(connection)
    return {
        "pages": number,
        "without": int(pages[clicked == 0].sum()),
        "several": int(pages[clicked > 1].sum()),
        "repeats": int(sizes["repeats"].sum()),
        "later": int(later),
        "unseen_pairs": int(unseen),
        "unseen_queries": int(unknown),
        "lag": lag,
        "repeated": repeated,
        "twins": twins,
        "alike": alike,
    }


def _repeated(connection, pages: int) -> tuple[int | None, int]:
    """The distance at which most pages are repeated, and how many they are."""
    connection.execute(f"CREATE TEMP TABLE hashes AS {HASHES}")
    lags = {pages // copies for copies in COPIES if pages % copies == 0}
    if (most := connection.execute(LAG).fetchone()) is not None:
        lags.add(int(most[0]))
    best: tuple[int | None, int] = (None, 0)

    def beyond(alike: float, by_chance: float) -> bool:
        return alike - by_chance > NOISE * (alike + by_chance) ** 0.5

    for lag in sorted(each for each in lags if 0 < each < pages):
        alike, by_chance = (
            connection.execute(AT_LAG.format(lag=each)).fetchone()[0] for each in (lag, lag + 1)
        )
        if alike <= best[1] or not beyond(alike, by_chance):
            continue
        if beyond(alike, connection.execute(BY_CHANCE.format(lag=lag)).fetchone()[0]):
            best = lag, int(alike)
    return best


def _twins(connection) -> tuple[int, int]:
    """Rankings that were shown twice and had several clicks, and those of them clicked alike."""
    twins, alike = connection.execute(TWINS).fetchone()
    return int(twins), int(alike)

"""Rows of pages in any order, sorted into pages by DuckDB.

Rows with the same key, such as a session and a query, are a page. If a position comes again among
them, they are several pages: a new one begins where positions start again; without positions, where
a document comes again. A click in a row of its own, behind the row of its impression, is a click of
that row.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from twotowers.errors import InputError

MIXED = 1.5
"""Runs of rising positions, as a multiple of how often a position comes, above which rows of
several pages are in no order."""

MADE = ("row", "clicks", "place")
"""Columns that the statements make anew."""
GROUPS = """
CREATE TABLE groups AS
SELECT {keys}, min(row) AS start, count(*) > count(DISTINCT {place}) AS repeats
FROM shown GROUP BY {keys}
"""
RUNS = """
CREATE TABLE runs AS
WITH marked AS (
    SELECT
        *,
        lag(place) OVER page AS before,
        place = before AND document = lag(document) OVER page AND clicks > 0 AS doubled,
        row_number() OVER (PARTITION BY {keys}, {place} ORDER BY row) AS times,
        row_number() OVER (PARTITION BY {keys}, place, document ORDER BY row) > 1 AND clicks > 0
            AS echo
    FROM shown JOIN groups USING ({keys})
    WHERE repeats
    WINDOW page AS (PARTITION BY {keys} ORDER BY row)
)
SELECT
    *,
    CASE
        WHEN {ranked} THEN sum((coalesce(place <= before, false) AND NOT doubled)::INT) OVER page
        ELSE max(times) OVER page
    END AS run
FROM marked
WINDOW page AS (PARTITION BY {keys} ORDER BY row)
"""
TWICE = """
SELECT row, place FROM runs
WHERE place = before AND NOT doubled AND (SELECT bool_or(clicks = 0) FROM shown)
ORDER BY row LIMIT 1
"""
UNORDERED = """
SELECT sum(runs) > {mixed} * sum(most), min(row) FROM (
    SELECT
        count(*) FILTER (place < before) + 1 AS runs,
        max(times) AS most,
        min(row) FILTER (times > 1) AS row
    FROM runs GROUP BY {keys}
)
"""
SORTED = """
WITH echoed AS (SELECT *, bool_and(echo) OVER (PARTITION BY {keys}, run) AS echoes FROM runs),
placed AS (
    SELECT
        * REPLACE (CASE WHEN echoes AND {ranked} THEN max(CASE WHEN NOT echoes THEN run END) OVER (
            PARTITION BY {keys}, place, document ORDER BY row
        ) ELSE run END AS run)
    FROM echoed
),
summed AS (
    SELECT
        * REPLACE (CASE WHEN {ranked} THEN sum(clicks) OVER here ELSE clicks END AS clicks),
        min(row) OVER (PARTITION BY {keys}, run) AS page,
        {ranked} AND row > min(row) OVER here AS again
    FROM placed
    WINDOW here AS (PARTITION BY {keys}, run, place, document)
)
SELECT {columns}, page, row, clicks::BIGINT AS clicks, place
FROM summed WHERE NOT again
UNION ALL
SELECT {columns}, start AS page, row, clicks, place
FROM shown JOIN groups USING ({keys})
WHERE NOT repeats
ORDER BY page, place, row
"""


def sorted_rows(
    rows: Iterable[pa.RecordBatch], keys: Sequence[str], *, ranked: bool, path: object
) -> Iterator[pa.Table]:
    """The rows, page by page, with `page`, a number per page in the order in which pages begin.

    They have the key columns, `document`, `clicks` and `place` (int64; null without positions), and
    `row` (int64), which rises. `ranked`: whether there are positions.
    """
    from twotowers.logs.warehouse import database, execute

    with database(path) as connection:
        if not execute(connection, "CREATE TABLE shown AS SELECT * FROM rows", rows):
            return
        names = [name for name in connection.table("shown").columns if name not in MADE]
        words = {
            "keys": ", ".join(keys), "columns": ", ".join(names), "ranked": str(ranked).lower(),
            "place": "place" if ranked else "document", "mixed": MIXED,
        }  # fmt: skip
        connection.execute(GROUPS.format(**words))
        connection.execute(RUNS.format(**words))
        for mixed, row in connection.execute(UNORDERED.format(**words)).fetchall():
            if not (ranked and mixed):
                continue
            raise InputError(
                f"row {row + 1}: rows of several pages have one value of the session, and are in "
                "no order",
                path=path,
                field="session",
                expected="rows in the order of time; or `page`, the columns that tell pages apart",
            )
        for row, place in connection.execute(TWICE).fetchall() if ranked else ():
            raise InputError(
                f"row {row + 1}: {place} is the position of two rows of a page",
                path=path,
                field="position",
                expected="a row per shown document, with its number of clicks",
            )
        for batch in connection.sql(SORTED.format(**words)).to_arrow_reader(100_000):
            yield pa.Table.from_batches([batch])

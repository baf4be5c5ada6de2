"""Reader of User Behavior Insights (UBI): queries and events, joined into result pages.

OpenSearch keeps them in the indexes `ubi_queries` and `ubi_events`. Solr's UBI component writes the
queries, and an application the events (UBI specification 1.3.0, https://ubisearch.dev). A record
that has an `action_name` is an event, and one that has hits or a `user_query` is a query.

DuckDB joins them within its memory limit, and uses the disk for the rest.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from glob import escape
from itertools import chain
from pathlib import Path

import pyarrow as pa

from twotowers.errors import InputError, check_choice, check_names
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, is_table, read_batches
from twotowers.files.frames import Frame, Source
from twotowers.logs.sessions import BATCH, Stream, page_batches
from twotowers.logs.strays import Tally
from twotowers.splits import LOG

LAYOUT = "UBI of OpenSearch and Solr: queries with their hits, and events, as JSON or tables"

CLICKS = ("click", "click_through")
"""Names of actions that the specification has for a click on a result."""
SHOWN = ("hits", "impressions")

RECORDS = """
CREATE TABLE records (
    query_id VARCHAR, action VARCHAR, text VARCHAR, moment VARCHAR, hits JSON, object VARCHAR,
    ordinal BIGINT
)
"""
# Answers to a search hold a list of records. They and exports of an index wrap a record in
# `_source`. The lines of a bulk request that say where a record goes are none. A table may have
# flat columns, or JSON as text.
ADD = """
INSERT INTO records
WITH single AS (
    SELECT unnest(
        CASE 'ARRAY'
            WHEN json_type(json->'$.hits.hits') THEN json->'$.hits.hits[*]'
            WHEN json_type(json->'$.response.docs') THEN json->'$.response.docs[*]'
            ELSE [json]
        END
    ) AS json
    FROM {records}
),
given AS (SELECT coalesce(json->'_source', json) AS record FROM single),
parsed AS (
    SELECT
        record,
        coalesce(
            nullif(record->'query_response_hit_ids', 'null'),
            nullif(record->'doc_ids', 'null'),
            nullif(record->'query_response_objects_ids', 'null')
        ) AS hits,
        CASE json_type(record->'event_attributes')
            WHEN 'VARCHAR' THEN try_cast(record->>'event_attributes' AS JSON)
            ELSE record->'event_attributes'
        END AS attributes
    FROM given
    WHERE coalesce(json_type(record->'index'), json_type(record->'create'), '') <> 'OBJECT'
)
SELECT
    record->>'query_id',
    record->>'action_name',
    nullif(record->>'user_query', ''),
    record->>'timestamp',
    hits,
    coalesce(
        attributes->>'$.object.object_id',
        record->>'event_attributes.object.object_id',
        record->>'object_id'
    ),
    try_cast(coalesce(
        attributes->>'$.position.ordinal',
        record->>'event_attributes.position.ordinal',
        record->>'ordinal',
        record->>'position'
    ) AS BIGINT)
FROM parsed
"""
# Solr joins the ids of hits by commas. An application may record the text of a query whose hits the
# search engine records.
ASKED = """
CREATE TABLE asked AS
SELECT
    query_id,
    count(*) AS times,
    min(moment) AS moment,
    first(text ORDER BY moment, hits, text) FILTER (text IS NOT NULL) AS text,
    first(
        CASE
            WHEN json_type(hits) = 'ARRAY' THEN hits->>'$[*]'
            WHEN hits->>'$' = '' THEN []
            WHEN hits->>'$' LIKE '[%' THEN try_cast(hits->>'$' AS JSON)->>'$[*]'
            ELSE list_transform(string_split(hits->>'$', ','), lambda each: trim(each))
        END
        ORDER BY moment, hits, text
    ) FILTER (hits IS NOT NULL) AS hits
FROM records
WHERE action IS NULL AND query_id IS NOT NULL AND (hits IS NOT NULL OR text IS NOT NULL)
GROUP BY query_id
"""
WRONG_HITS = """
SELECT coalesce(query_id, 'without id'), hits::VARCHAR
FROM records
WHERE hits IS NOT NULL AND json_type(hits) <> 'ARRAY'
    AND (json_type(hits) <> 'VARCHAR' OR (hits->>'$') LIKE '[%' AND NOT json_valid(hits->>'$'))
ORDER BY ALL
LIMIT 1
"""
ACTIONS = """
SELECT action, count(*) FROM records WHERE action IS NOT NULL GROUP BY action ORDER BY 2 DESC, 1
"""
# A click is an impression, too. But clicks alone do not tell a page.
LISTED = """
CREATE TABLE listed AS
WITH objects AS (
    SELECT
        query_id, object, min(ordinal) AS ordinal, min(text) AS text, min(moment) AS moment,
        bool_or(action = 'impression') AS shown
    FROM records
    WHERE (action = 'impression' OR list_contains($clicks, action))
        AND query_id IS NOT NULL AND object IS NOT NULL
    GROUP BY query_id, object
)
SELECT
    query_id,
    min(text) AS text,
    min(moment) AS moment,
    list(object ORDER BY ordinal, object) AS shown,
    count(*) = count(DISTINCT ordinal)
        AND max(ordinal) - min(ordinal) = count(*) - 1
        AND min(ordinal) IN (0, 1) AS whole
FROM objects
GROUP BY query_id
HAVING bool_or(shown)
"""
PAGES = """
WITH clicked AS (
    SELECT query_id, list(object ORDER BY object) AS clicked
    FROM records
    WHERE list_contains($clicks, action) AND object IS NOT NULL
    GROUP BY query_id
)
SELECT
    query_id,
    coalesce(asked.text, listed.text) AS text,
    CASE WHEN {hits} THEN hits ELSE shown END AS documents,
    CASE WHEN {hits} THEN true ELSE whole END AS whole,
    coalesce(clicked, []) AS clicked
FROM asked FULL JOIN listed USING (query_id) LEFT JOIN clicked USING (query_id)
ORDER BY coalesce(asked.moment, listed.moment), query_id
"""
# Ordinals count from 0 in some logs and from 1 in others.
COUNTS = """
SELECT
    (SELECT coalesce(sum(times - 1), 0) FROM asked) AS repeated_queries,
    count(*) FILTER (object IS NULL) AS clicks_without_document,
    count(*) FILTER (object IS NOT NULL AND asked.query_id IS NULL AND listed.query_id IS NULL)
        AS clicks_without_query,
    count(*) FILTER (ordinal IS NOT NULL AND list_contains(asked.hits, object)) - greatest(
        count(*) FILTER (ordinal = list_position(asked.hits, object)),
        count(*) FILTER (ordinal = list_position(asked.hits, object) - 1)
    ) AS clicks_at_other_positions
FROM records LEFT JOIN asked USING (query_id) LEFT JOIN listed USING (query_id)
WHERE list_contains($clicks, action)
"""


def read(
    path: Source,
    *,
    actions: Sequence[str] = CLICKS,
    shown: str = "hits",
    split: str = LOG,
    strays: str = "drop",
    repeats: str = "drop",
) -> Stream:
    """Read queries and events, and join them by `query_id`: a page per query.

    The query of a page is its `user_query`. Its documents are its hits, in their order; or, if it
    has none, the objects of its impressions and clicks, each at its first ordinal. All ids are
    text.

    Args:
        path: a file, or a pattern of files, with queries and events. JSON (an object a line, or
            one list; perhaps .gz) is as both indexes hold it, or as an export wraps it. Tables
            have columns of these names; those of nested fields may have dots.
        actions: names of actions that are clicks.
        shown: 'hits', or 'impressions' for a log whose users did not see all hits.
        split: of all pages.
        strays: 'drop' or 'error': clicks on documents that are not on the page.
        repeats: 'drop' or 'error': further clicks on a document of one page, and pages that list a
            document twice.

    Returns:
        Pages as `twotowers.logs.sessions` describes, in order of time. Also counted, if there are
        any: clicks_without_query and clicks_without_document, which belong to no page; clicks at
        other positions than their hit; repeated_queries, of which the first text and the first hits
        count; and pages left out, since they have no text, no document, a document twice, or
        impressions with gaps.

    Examples:
        >>> _ = Path("ubi.ndjson").write_text(
        ...     '{"query_id": "a", "user_query": "tv", "query_response_hit_ids": ["x", "y"]}\\n'
        ...     '{"query_id": "a", "action_name": "click", "event_attributes":'
        ...     ' {"object": {"object_id": "y"}, "position": {"ordinal": 2}}}\\n'
        ... )
        >>> [batch["clicks"].to_pylist() for batch in read("ubi.ndjson").batches]
        [[[False, True]]]
    """
    check_choice(shown, SHOWN, field="shown")
    actions = check_names(actions, field="actions", of="actions", example=CLICKS[0])
    tally = Tally(path, strays=strays, repeats=repeats)
    files = files_of(path)
    for file in files:
        if isinstance(file, Path) and not file.is_file():
            raise InputError("there is no such file", path=file, expected="UBI")
    pages = _pages(files, path, actions, shown, tally)
    return Stream(page_batches(pages, split), tally.seen)


def _pages(
    files: list, path: Source, actions: list[str], shown: str, tally: Tally
) -> Iterator[tuple[str, list[str], list[bool]]]:
    # DuckDB is imported by those who read such a log only.
    from twotowers.logs.warehouse import database

    with (
        tempfile.TemporaryDirectory(prefix="twotowers-") as folder,
        database(Path(folder) / "ubi") as connection,
    ):
        connection.execute(RECORDS)
        for file in files:
            _add(connection, file)
        _check(connection, actions, path)
        clicks = {"clicks": actions}
        connection.execute(ASKED)
        connection.execute(LISTED, clicks)
        counts = connection.sql(COUNTS, params=clicks)
        (numbers,) = counts.fetchall()
        seen = Counter(dict(zip(counts.columns, map(int, numbers), strict=True)))
        pages = PAGES.format(hits="len(hits) > 0" if shown == "hits" else "false")
        for batch in connection.sql(pages, params=clicks).to_arrow_reader(BATCH):
            for page in batch.to_pylist():
                documents, where = page["documents"], f"query {page['query_id']}"
                if lack := _lack(page):
                    seen[f"pages_{lack}"] += 1
                elif not all(documents):
                    raise InputError(
                        f"{where}: the id of a hit is missing", path=path, expected="an id per hit"
                    )
                elif not tally.left_out(documents, where):
                    yield page["text"], documents, tally.page(documents, page["clicked"], where)
        tally.seen.update({name: number for name, number in seen.items() if number})
    if not tally.seen["pages"]:
        told = [f"{name.replace('_', ' ')}: {number:,}" for name, number in seen.items() if number]
        raise InputError(
            "; ".join(["there is no page", *told]),
            path=path,
            expected="queries with user_query and query_response_hit_ids, or impressions",
        )


def _lack(page: dict) -> str | None:
    """Why a query is no page."""
    if page["text"] is None:
        return "without_text"
    if not page["documents"]:
        return "without_documents"
    return None if page["whole"] else "with_gaps"


def _add(connection, file: Path | Frame) -> None:
    """Add the records of a file."""
    import duckdb

    from twotowers.logs.warehouse import execute

    if is_table(file):
        columns = column_names(file)
        empty = pa.record_batch([pa.array([], pa.string())] * len(columns), names=columns)
        batches = read_batches(file, columns)
        first = next(batches, empty)
        source = "(SELECT to_json(rows) AS json FROM rows)"
        execute(connection, ADD.format(records=source), rows=chain([first], batches))
        return
    name = escape(str(file)).replace("'", "''")
    try:
        connection.execute(ADD.format(records=f"read_json_objects('{name}', format = 'auto')"))
    except (duckdb.InvalidInputException, duckdb.IOException) as error:
        raise InputError(
            f"cannot be read: {str(error)[:200]}", path=file, expected="a JSON object per line"
        ) from error


def _check(connection, actions: list[str], path: Source) -> None:
    """Raise InputError for hits that are no list, and for a log without clicks."""
    for query, hits in connection.execute(WRONG_HITS).fetchall():
        raise InputError(
            f"query {query}: {hits[:60]} was found",
            path=path,
            field="query_response_hit_ids",
            expected="a list of ids; or ids with commas between them",
        )
    found = connection.execute(ACTIONS).fetchall()
    if not {name for name, _ in found} & set(actions):
        raise InputError(
            "no event is a click; actions are "
            + (", ".join(f"{name} ({number:,})" for name, number in found[:10]) or "none"),
            path=path,
            field="actions",
            expected="names of actions that are clicks",
        )

"""Statements of DuckDB that join the records of User Behavior Insights into pages."""

RECORDS = """
CREATE TABLE records (
    query_id VARCHAR, client VARCHAR, action VARCHAR, text VARCHAR, moment DOUBLE, stamp VARCHAR,
    hits JSON, start BIGINT, page BIGINT, size BIGINT, object VARCHAR, ordinal BIGINT
)
"""
# Seconds since 1970 of a date with or without a zone, as Kibana or a browser prints it, or of a
# number of seconds, or of thousandths, millionths and so on of them.
MOMENT = """
coalesce(
    epoch(try_cast(stamp AS TIMESTAMPTZ)),
    epoch(try_strptime(stamp, ['%b %-d, %Y @ %H:%M:%S.%g', '%a, %d %b %Y %H:%M:%S GMT'])),
    CASE WHEN regexp_full_match(stamp, '[0-9]{9,19}') THEN
        stamp::DOUBLE / pow(1000, greatest((length(stamp) - 10) // 3, 0))
    END
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
        END AS attributes,
        CASE json_type(record->'query_attributes')
            WHEN 'VARCHAR' THEN try_cast(record->>'query_attributes' AS JSON)
            ELSE record->'query_attributes'
        END AS about,
        record->>'timestamp' AS stamp
    FROM given
    WHERE coalesce(json_type(record->'index'), json_type(record->'create'), '') <> 'OBJECT'
)
SELECT
    nullif(record->>'query_id', ''),
    nullif(record->>'client_id', ''),
    record->>'action_name',
    nullif(record->>'user_query', ''),
    {moment},
    stamp,
    hits,
    try_cast(coalesce(about->>'from', about->>'start', record->>'query_attributes.from') AS BIGINT),
    try_cast(coalesce(about->>'page', record->>'query_attributes.page') AS BIGINT),
    try_cast(coalesce(about->>'size', record->>'query_attributes.size') AS BIGINT),
    nullif(coalesce(
        attributes->>'$.object.object_id',
        record->>'event_attributes.object.object_id',
        record->>'object_id'
    ), ''),
    try_cast(coalesce(
        attributes->>'$.position.ordinal',
        record->>'event_attributes.position.ordinal',
        record->>'ordinal',
        record->>'position'
    ) AS BIGINT)
FROM parsed
"""
# Solr joins the ids of hits by commas. An application may record the text of a query whose hits the
# search engine records. A query has more than one screen of hits if it is repeated with another
# `from`, or with another number of the page, from 0 or 1.
ASKED = """
CREATE TABLE asked AS
WITH listed AS (
    SELECT
        * EXCLUDE (hits, start),
        CASE
            WHEN json_type(hits) = 'ARRAY' THEN hits->>'$[*]'
            WHEN hits->>'$' = '' THEN []
            WHEN hits->>'$' LIKE '[%' THEN try_cast(hits->>'$' AS JSON)->>'$[*]'
            ELSE list_transform(string_split(hits->>'$', ','), lambda each: trim(each))
        END AS hits,
        coalesce(
            start,
            (page - (SELECT least(min(page), 1) FROM records)) * coalesce(size, len(hits)),
            0
        ) AS start
    FROM records
    WHERE action IS NULL AND query_id IS NOT NULL AND (hits IS NOT NULL OR text IS NOT NULL)
),
screens AS (
    SELECT
        query_id, start, count(*) AS times, min(moment) AS moment, min(stamp) AS stamp,
        first(text ORDER BY moment, stamp, hits, text) FILTER (text IS NOT NULL) AS text,
        first(hits ORDER BY moment, stamp, hits, text) FILTER (hits IS NOT NULL) AS hits
    FROM listed
    GROUP BY query_id, start
)
SELECT
    query_id,
    sum(times - 1) AS again,
    min(moment) AS moment,
    min(stamp) AS stamp,
    first(text ORDER BY start) FILTER (text IS NOT NULL) AS text,
    min(start) FILTER (hits IS NOT NULL) AS begins,
    flatten(list(hits ORDER BY start) FILTER (hits IS NOT NULL)) AS hits,
    flatten(list(range(start + 1, start + len(hits) + 1) ORDER BY start) FILTER (hits IS NOT NULL))
        AS places
FROM screens
GROUP BY query_id
"""
# Events may have the text, too.
SAID = """
CREATE TABLE said AS
SELECT
    query_id,
    first(text ORDER BY moment, stamp, text) FILTER (text IS NOT NULL) AS text,
    min(client) AS client
FROM records WHERE query_id IS NOT NULL GROUP BY query_id
"""
CLIENTS = "SELECT count(DISTINCT client) FROM said"
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
# A click is an impression, too. But clicks alone do not tell a page. Ordinals count from 0 or 1, in
# parts of some logs: a page that has neither counts as most do.
LISTED = """
CREATE TABLE listed AS
WITH objects AS (
    SELECT
        query_id, object, min(ordinal) AS ordinal, min(moment) AS moment, min(stamp) AS stamp,
        bool_or(action = $view) AS shown
    FROM records
    WHERE (action = $view OR list_contains($clicks, action))
        AND query_id IS NOT NULL AND object IS NOT NULL
    GROUP BY query_id, object
),
pages AS (
    SELECT
        query_id,
        min(moment) AS moment,
        min(stamp) AS stamp,
        list(object ORDER BY ordinal, object) AS shown,
        list(ordinal ORDER BY ordinal, object) AS ordinals,
        min(ordinal) AS low,
        count(*) = count(DISTINCT ordinal) AND low >= 0 AS whole,
        max(ordinal) - low = count(*) - 1 AS closed
    FROM objects
    GROUP BY query_id
    HAVING bool_or(shown)
),
based AS (
    SELECT
        *,
        CASE
            WHEN low = 0 THEN 0
            WHEN low = 1 AND closed THEN 1
            ELSE (SELECT (2 * count(*) FILTER (low = 0) <= count(*))::INT FROM pages)
        END AS base
    FROM pages
)
SELECT * EXCLUDE (ordinals), list_transform(ordinals, lambda each: each - base + 1) AS places
FROM based
"""
# Ordinals of a later screen may begin anew.
PAGES = """
WITH clicked AS (
    SELECT query_id, list(object ORDER BY object) AS clicked
    FROM records
    WHERE list_contains($clicks, action) AND object IS NOT NULL
    GROUP BY query_id
)
SELECT
    query_id,
    coalesce(asked.text, said.text) AS text,
    CASE WHEN {hits} THEN hits ELSE shown END AS documents,
    CASE
        WHEN {hits} THEN asked.places
        WHEN begins >= listed.places[1]
            THEN list_transform(listed.places, lambda each: each + begins)
        ELSE listed.places
    END AS places,
    CASE WHEN {hits} THEN len(list_distinct(asked.places)) = len(hits) ELSE whole END AS whole,
    coalesce(clicked, []) AS clicked,
    client,
    coalesce(asked.moment, listed.moment) IS NOT NULL AS timed
FROM asked
FULL JOIN listed USING (query_id) LEFT JOIN clicked USING (query_id) LEFT JOIN said USING (query_id)
ORDER BY coalesce(asked.moment, listed.moment), coalesce(asked.stamp, listed.stamp), query_id
"""
# Ordinals count from 0 in some logs and from 1 in others, or on each screen anew.
COUNTS = """
WITH clicks AS (
    SELECT object, begins, asked.places[list_position(asked.hits, object)] - ordinal AS off,
        asked.query_id IS NULL AND listed.query_id IS NULL AS unknown
    FROM records LEFT JOIN asked USING (query_id) LEFT JOIN listed USING (query_id)
    WHERE list_contains($clicks, action)
)
SELECT
    (SELECT coalesce(sum(again), 0) FROM asked) AS repeated_queries,
    (
        SELECT count(*) FROM records
        WHERE query_id IS NULL AND action IS NULL AND (hits IS NOT NULL OR text IS NOT NULL)
    ) AS pages_without_id,
    (
        SELECT count(*) FROM records LEFT JOIN asked USING (query_id)
        WHERE action = $view AND object IS NULL AND NOT coalesce({hits}, false)
    ) AS impressions_without_document,
    (SELECT count(*) FROM records WHERE action = $view AND object IS NOT NULL) AS impressions,
    count(*) FILTER (object IS NULL) AS clicks_without_document,
    count(*) FILTER (object IS NOT NULL AND unknown) AS clicks_without_query,
    count(off) - greatest(
        count(*) FILTER (off = 0), count(*) FILTER (off = 1),
        count(*) FILTER (off = begins), count(*) FILTER (off = begins + 1)
    ) AS clicks_at_other_positions
FROM clicks
"""

"""Reader of User Behavior Insights (UBI): queries and events, joined into result pages.

OpenSearch keeps them in the indexes `ubi_queries` and `ubi_events`. Solr's UBI component writes the
queries, and an application the events (UBI specification 1.3.0, https://ubisearch.dev). A record
that has an `action_name` is an event, and one that has hits or a `user_query` is a query.

DuckDB joins them within its memory limit, and uses the disk for the rest.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path

import pyarrow as pa

from twotowers.errors import InputError, check_names
from twotowers.files.artefacts import Frame, Source, files_of
from twotowers.files.batches import column_names, is_table, read_batches
from twotowers.logs.sessions import BATCH, OWN, Stream, page_batches, seen_lines
from twotowers.logs.strays import Tally
from twotowers.logs.ubi_tables import (
    ACTIONS,
    ADD,
    ASKED,
    CLIENTS,
    COUNTS,
    LISTED,
    MOMENT,
    PAGES,
    RECORDS,
    SAID,
    WRONG_HITS,
)

LAYOUT = "UBI of OpenSearch and Solr: queries with their hits, and events, as JSON or tables"

CLICKS = ("click", "click_through")
"""Names of actions that the specification has for a click on a result."""
SHOWN = ("hits", "impressions")
VIEWS = ("impression", "view")
"""Names of an impression; the second, of the specification's drafts, if no event has the first."""


def read(
    path: Source,
    *,
    actions: Sequence[str] = CLICKS,
    shown: str = "hits",
    strays: str = "drop",
    repeats: str = "drop",
    keys: bool = False,
) -> Stream:
    """Read queries and events, and join them by `query_id`: a page per query.

    The query of a page is its `user_query`. Its documents are its hits, in their order; or, if it
    has none, the objects of its impressions and clicks, each at its first ordinal. A later screen
    of a query, with another `from` in its `query_attributes`, goes on behind the first. Its user is
    the `client_id`, if there are several. All ids are text.

    Args:
        path: a file, or a pattern of files, with queries and events. JSON (an object a line, or
            one list; perhaps .gz) is as both indexes hold it, or as an export wraps it. Tables
            have columns of these names; those of nested fields may have dots.
        actions: names of actions that are clicks.
        shown: 'hits', or 'impressions' for a log whose users did not see all hits, or the name of
            the action that is an impression, if it is another than `impression` or `view`.

    Returns:
        Pages in order of time. Also counted, if there are
        any: clicks_without_query and clicks_without_document, which belong to no page; clicks at
        other positions than their hit; repeated_queries, of which the first text and the first hits
        count; pages with missing positions; impressions that name no document; and pages left out,
        since they have no id, no text, no document, a document twice, or no positions.
    """
    actions = check_names(actions, field="actions", of="actions", example=CLICKS[0])
    tally = Tally(path, strays=strays, repeats=repeats)
    files = files_of(path)
    stream = Stream((), tally.seen)
    stream.batches = _batches(files, path, actions, shown, keys, tally, stream)
    return stream


def _batches(
    files: list, path: Source, actions: list[str], shown: str, keys: bool, tally: Tally,
    stream: Stream,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    # DuckDB is imported by those who read such a log only.
    from twotowers.logs.warehouse import database

    with database(path) as connection:
        connection.execute(RECORDS)
        for file in files:
            _add(connection, file)
        view = _check(connection, actions, shown, path)
        clicks, hits = {"clicks": actions}, "len(asked.hits) > 0" if shown == "hits" else "false"
        connection.execute(ASKED)
        connection.execute(SAID)
        connection.execute(LISTED, {**clicks, "view": view})
        counts = connection.sql(COUNTS.format(hits=hits), params={**clicks, "view": view})
        (numbers,) = counts.fetchall()
        seen = Counter(dict(zip(counts.columns, map(int, numbers), strict=True)))
        if not seen["impressions_without_document"]:
            del seen["impressions"]
        ((clients,),) = connection.execute(CLIENTS).fetchall()
        untimed = 0

        def pages() -> Iterator[tuple]:
            nonlocal untimed
            result = connection.sql(PAGES.format(hits=hits), params=clicks)
            for batch in result.to_arrow_reader(BATCH):
                for page in batch.to_pylist():
                    documents, where = page["documents"], f"query {page['query_id']}"
                    places = page["places"]
                    if lack := _lack(page):
                        seen[f"pages_{lack}"] += 1
                    elif not all(documents):
                        raise InputError(
                            f"{where}: the id of a hit is missing",
                            path=path,
                            expected="an id per hit",
                        )
                    elif not tally.left_out(documents, where):
                        seen["pages_missing_positions"] += places[-1] > len(places)
                        untimed += not page["timed"]
                        clicked = tally.page(documents, page["clicked"], where)
                        further = [page["query_id"]] if keys else []
                        further += [page["client"] or ""] if clients > 1 else []
                        yield page["text"], documents, clicked, places, *further

        names = [
            "position",
            *([f"{OWN}query_id"] if keys else []),
            *(["user"] if clients > 1 else []),
        ]
        for batch in page_batches(pages(), names):
            if clients > 1:
                at = batch.schema.get_field_index("user")
                batch = batch.set_column(at, "user", tally.users(batch["user"]))
            yield batch
        stream.ordered = not untimed
        tally.seen.update({name: number for name, number in seen.items() if number})
    if not tally.seen["pages"]:
        dropped = seen_lines({name: number for name, number in seen.items() if number})
        raise InputError(
            "; ".join(["there is no page", *dropped]),
            path=path,
            expected="queries with user_query and query_response_hit_ids, or impressions",
        )


def _lack(page: dict) -> str | None:
    """Why a query is no page."""
    if page["text"] is None:
        return "without_text"
    if not page["documents"]:
        return "without_documents"
    return None if page["whole"] else "without_positions"


def _add(connection, file: Path | Frame) -> None:
    """Add the records of a file."""
    import duckdb

    from twotowers.logs.warehouse import execute

    if is_table(file):
        source = "(SELECT to_json(rows) AS json FROM rows)"
        statement = ADD.format(records=source, moment=MOMENT)
        execute(connection, statement, read_batches(file, column_names(file)))
        return
    name = escape(str(file)).replace("'", "''")
    try:
        source = f"read_json_objects('{name}', format = 'auto')"
        connection.execute(ADD.format(records=source, moment=MOMENT))
    except (duckdb.InvalidInputException, duckdb.IOException) as error:
        raise InputError(
            f"cannot be read: {str(error).splitlines()[0][:200]}",
            path=file,
            expected="a JSON object per line",
        ) from error


def _check(connection, actions: list[str], shown: str, path: Source) -> str:
    """The action that is an impression. Raises InputError for hits that are no list, and for a log
    without clicks or such an action."""
    for query, hits in connection.execute(WRONG_HITS).fetchall():
        raise InputError(
            f"query {query}: {hits[:60]} was found",
            path=path,
            field="query_response_hit_ids",
            expected="a list of ids; or ids with commas between them",
        )
    counts = connection.execute(ACTIONS).fetchall()
    known = dict(counts)
    said = ", ".join(f"{name} ({number:,})" for name, number in counts[:10]) or "none"
    if not {*known} & set(actions):
        raise InputError(
            f"no event is a click; actions are {said}",
            path=path,
            field="actions",
            expected="names of actions that are clicks"
            + ("" if known else ", and the events of `ubi_events`"),
        )
    views = VIEWS if shown in SHOWN else (shown,)
    view = next((name for name in views if name in known), None)
    if view is None and shown != SHOWN[0]:
        raise InputError(
            f"no event is an impression; actions are {said}",
            path=path,
            field="shown",
            expected="hits, impressions, or the action that is an impression",
        )
    return view or VIEWS[0]

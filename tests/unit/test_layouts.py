"""What a log is taken for, by the names of its columns or by its first line."""

from itertools import chain, combinations

import pyarrow as pa
import pytest

from twotowers.errors import InputError
from twotowers.files.artefacts import Frame
from twotowers.logs.layouts import recognised, usual

NAMES = {
    "session": "session session_id sessionid sid search_id page_id serp_id request_id visit_id "
    "visit",
    "query": "query query_id qid q search_term search_phrase keyword keywords",
    "document": "document document_id doc doc_id docid url url_id item item_id product product_id "
    "sku asin",
    "position": "position pos rank slot",
    "clicks": "clicks click clicked is_click is_clicked click_count",
    "impressions": "impressions impression_count views exposures",
    "documents": "documents document_ids docs doc_ids query_doc_ids urls items",
    "features": "query_doc_features features",
    "user": "user user_id uid client_id visitor visitor_id customer_id user_pseudo_id",
    "page_count": "page_count",
    "time": "time timestamp ts datetime date_time event_time created_at",
}


@pytest.mark.parametrize("ours", NAMES)
def test_usual_names_are_recognised_however_they_are_written(ours):
    """The first of them that a table has is the one."""
    names = NAMES[ours].split()
    for at, name in enumerate(names):
        for written in (name.upper(), name.replace("_", " ").title(), name.replace("_", "-")):
            assert usual(["other", written, *names[:at:-1]]) == {ours: written}


COLUMNS = ("session", "query", "document", "position", "impressions", "clicks", "documents",
           "features")  # fmt: skip
FURTHER = ("user", "page_count", "time")


def expected(names: set[str]) -> tuple[str, set[str], str | None] | None:
    """Format, columns that are read, and the column of the time: docs/logs.md, "Formats"."""
    row = {"query", "document", "clicks"}
    if {"documents", "clicks"} <= names:
        found = "pages", {"documents", "clicks", *(names & {"query", "user", "page_count"})}
    elif {"features", "clicks"} <= names:
        found = "vectors", {"features", "clicks", *(names & {"query", "user"})}
    elif not row <= names or not names & {"session", "position"}:
        return None
    elif "session" in names:
        found = "rows", {*row, "session", *(names & {"position", "user"})}
    else:
        found = "cells", {*row, "position", *(names & {"impressions"})}
    return *found, "time" if "time" in names and found[0] in ("pages", "rows") else None


@pytest.mark.parametrize("further", [(), FURTHER])
def test_tables_are_recognised_by_their_columns(further):
    """All sets of columns: a table with sessions is not counted."""
    for names in chain(*(combinations(COLUMNS, size) for size in range(1, len(COLUMNS) + 1))):
        names = {*names, *further}
        table = Frame(pa.table({name: [1, 2] for name in sorted(names)}))
        if (wanted := expected(names)) is None:
            with pytest.raises(InputError, match="no column is named as"):
                recognised(table)
            continue
        found = recognised(table)
        assert (found.format, {*found.columns}, found.time) == wanted
        assert {*found.columns} == {*found.columns.values()}


UBI = ("action_name", "user_query", "query_response_hit_ids", "query_response_objects_ids",
       "doc_ids", "hits", "response", "_source", "index", "create")  # fmt: skip
LINES = {
    "wscd": ["7\t0\tQ\t3\t0\t1\t2", "7\t0\tC\t4"],
    "yandex": ["7_1 :x\t3 :y", "7_1\t1 :0"],
    "ubi": [f'{{"{key}": 1}}' for key in UBI],
}


@pytest.mark.parametrize(("format", "line"), [(f, line) for f in LINES for line in LINES[f]])
def test_text_is_recognised_by_its_first_line(tmp_path, format, line):
    path = tmp_path / ("log.json" if format == "ubi" else "log.txt")
    path.write_text(line + "\n")
    assert recognised(path).format == format


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7\t0\tD\t3", "is the first line of no log that we know"),
        ("7\t0\tQ", "is the first line of no log that we know"),
        ("query;document;clicks;device", "the first line is that of a table"),
        ("query;document;device", "is the first line of no log that we know"),
        ('{"took": 3}', "the first object has the keys took"),
        ("[1, 2]", "the first object is"),
    ],
)
def test_text_that_is_no_log_is_refused(tmp_path, line, message):
    (tmp_path / "log.txt").write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        recognised(tmp_path / "log.txt")


@pytest.mark.parametrize("key", ["action_name", "query_response_hit_ids"])
def test_tables_of_ubi_are_recognised(key):
    table = pa.table({"query_id": ["a"], key: ["click"]})
    assert recognised(Frame(table)).format == "ubi"
    with pytest.raises(InputError):
        recognised(Frame(table.drop_columns("query_id")))

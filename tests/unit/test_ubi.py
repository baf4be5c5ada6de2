"""User Behavior Insights: queries and events as OpenSearch and Solr keep them -> pages."""

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import twotowers as tt
from tests.logs import refused, taken
from twotowers.errors import InputError
from twotowers.logs.strays import left_out


def query(number, text, hits, **more):
    """A record of `ubi_queries`, with the fields that OpenSearch's documentation shows."""
    return {
        "query_response_id": f"response-{number}", "user_query": text, "query_id": number,
        "application": "shop", "query_response_hit_ids": hits, "query_attributes": {},
        "client_id": "CLIENT-1", "timestamp": f"2025-01-23T13:18:2{len(text)}.274+0000", **more,
    }  # fmt: skip


def event(number, action, document, ordinal=None, **more):
    """A record of `ubi_events`."""
    return {
        "action_name": action, "client_id": "CLIENT-1", "query_id": number, "page_id": "/",
        "message_type": "INFO", "message": "a card (undefined)", "timestamp": 1724944081669,
        "event_attributes": {
            "object": {"object_id_field": "product", "object_id": document, "object_detail": None},
            "position": {"ordinal": ordinal},
        }, **more,
    }  # fmt: skip


QUERIES = [query("q-2", "laptop", ["B07", "B09", "B12"]), query("q-1", "tv", ["B12", "A01"])]
EVENTS = [
    event("q-2", "product_hover", "1625640"),
    event("q-2", "impression", "B07", 1),
    event("q-2", "click", "B09", 2),
    event("q-1", "click", "A01", 2),
    event("q-1", "click", "B12", 1),
]
PAGES = [
    {"split": "log", "query": "tv", "documents": ["B12", "A01"], "clicks": [True, True]},
    {"split": "log", "query": "laptop", "documents": ["B07", "B09", "B12"],
     "clicks": [False, True, False]},
]  # fmt: skip
"""In order of time."""


def lines(path, records):
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def log_of(tmp_path, queries, events, name="ubi.ndjson"):
    return lines(tmp_path / name, [*queries, *events])


def bulk(folder, queries, events):
    actions = [{"index": {"_index": "ubi", "_id": str(at)}} for at in range(len(events))]
    lines(folder / "ubi_events.ndjson", [x for pair in zip(actions, events, strict=True)
                                         for x in pair])  # fmt: skip
    lines(folder / "ubi_queries.ndjson", queries)


def exported(folder, queries, events):
    records = [{"_index": "ubi", "_id": "1", "_source": each} for each in [*queries, *events]]
    lines(folder / "dump.jsonl", records)


def searched(folder, queries, events):
    """Answers of OpenSearch and of Solr to a search for everything."""
    hits = [{"_index": "ubi_events", "_score": 1, "_source": each} for each in events]
    answer = {"took": 1, "hits": {"total": {"value": 5}, "hits": hits}}
    (folder / "events.json").write_text(json.dumps(answer, indent=1))
    (folder / "queries.json").write_text(json.dumps({"response": {"docs": queries}}))


def lists(folder, queries, events):
    for name, records in (("queries", queries), ("events", events)):
        (folder / f"{name}.json").write_text(json.dumps(records, indent=1))


def packed(folder, queries, events):
    text = "\n".join(map(json.dumps, [*events, *queries])).encode()
    (folder / "ubi.ndjson.gz").write_bytes(gzip.compress(text))


def nested(folder, queries, events):
    for name, records in (("queries", queries), ("events", events)):
        columns = [name for name in records[0] if name != "query_attributes"]
        table = pa.Table.from_pylist(records).select(columns)
        pq.write_table(table, folder / f"it's [{name}].parquet")


def flat(folder, queries, events):
    with (folder / "queries.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["query_id", "user_query", "timestamp", "query_response_hit_ids"])
        for each in queries:
            hits = json.dumps(each["query_response_hit_ids"])
            writer.writerow([each["query_id"], each["user_query"], each["timestamp"], hits])
    with (folder / "events.csv").open("w") as file:
        writer = csv.writer(file)
        ours = ("object.object_id", "position.ordinal")
        writer.writerow(["query_id", "action_name", *(f"event_attributes.{x}" for x in ours)])
        for each in events:
            inner = each["event_attributes"]
            place = inner["position"]["ordinal"]
            writer.writerow(
                [each["query_id"], each["action_name"], inner["object"]["object_id"], place]
            )


def as_text(folder, queries, events):
    texts = [{**each, "event_attributes": json.dumps(each["event_attributes"])} for each in events]
    lines(folder / "ubi.json", [*queries, *texts])


@pytest.mark.parametrize("write", [bulk, exported, searched, lists, packed, nested, flat, as_text])
def test_pages_from_any_layout(tmp_path, write):
    write(tmp_path, QUERIES, EVENTS)
    log = tt.read_log(tmp_path)
    assert str(log.layout) == "format 'ubi'"
    assert tt.read_log(tmp_path / log.source.name).pages == 2
    found, seen = taken(log.source, "ubi")
    assert found == PAGES
    assert seen == {"pages": 2, "clicks": 3, "repeated_clicks": 0, "clicks_off_page": 0}


def test_solr_joins_hits_by_commas(tmp_path):
    record = {"query_id": "a", "user_query": "ram", "doc_ids": "x,y,z", "timestamp": "2025"}
    empty = {"query_id": "b", "user_query": "ram", "doc_ids": ""}
    one = {"query_id": "c", "user_query": "ram", "doc_ids": "5", "timestamp": "2026"}
    path = log_of(tmp_path, [record, empty, one], [event("a", "click_through", "y")])
    found, seen = taken(path, "ubi")
    assert [page["documents"] for page in found] == [["x", "y", "z"], ["5"]]
    assert found[0]["clicks"] == [False, True, False]
    assert seen["pages_without_documents"] == 1


def test_clicks_are_distinguished(tmp_path):
    events = [
        *[event("q-1", "click", "A01", 2)] * 3,
        event("q-1", "click", "B12", 7),
        event("q-2", "click", "nowhere", 1),
        event("q-2", "click", None, 1),
        event(None, "click", "B07", 1),
        event("unknown", "click", "B07", 1),
    ]
    queries = [*QUERIES, QUERIES[0] | {"query_response_hit_ids": ["B09"], "timestamp": "2026"}]
    path = log_of(tmp_path, queries, events)
    found, seen = taken(path, "ubi")
    assert [page["clicks"] for page in found] == [[True, True], [False, False, False]]
    assert seen == {
        "pages": 2, "clicks": 5, "repeated_clicks": 2, "clicks_off_page": 1,
        "clicks_without_query": 2, "clicks_without_document": 1, "clicks_at_other_positions": 1,
        "repeated_queries": 1,
    }  # fmt: skip
    assert "query q-2: 'nowhere' is clicked" in str(refused(path, "ubi", strays="error"))
    assert "query q-1: a document is clicked more" in str(refused(path, "ubi", repeats="error"))


def test_text_and_hits_may_be_recorded_apart(tmp_path):
    text, hits = query("q-3", "phone", None), query("q-3", "", ["P1", "P2"], timestamp="2026")
    for records in ([text, hits], [text | {"timestamp": "2027"}, hits]):
        path = log_of(tmp_path, records, [event("q-3", "click", "P2", 2)])
        found, seen = taken(path, "ubi")
        assert [page["query"] for page in found] == ["phone"]
        assert [page["documents"] for page in found] == [["P1", "P2"]]
        assert (seen["pages"], seen["repeated_queries"]) == (1, 1)


def test_one_event_that_has_the_text_is_enough(tmp_path):
    events = [
        event("a", "impression", "x", 1, timestamp=1),
        event("a", "click", "x", 1, timestamp=2, user_query="tv"),
        event("a", "impression", "y", 2, timestamp=3),
    ]
    for queries in ([query("a", "", ["x", "y"])], []):
        found, _ = taken(log_of(tmp_path, queries, events), "ubi")
        assert [(page["query"], page["documents"]) for page in found] == [("tv", ["x", "y"])]


def test_ordinals_may_begin_with_0(tmp_path):
    events = [event("q-1", "click", "B12", 0), event("q-2", "click", "B09", 1)]
    assert "clicks_at_other_positions" not in taken(log_of(tmp_path, QUERIES, events), "ubi")[1]


def test_queries_without_hits_have_impressions(tmp_path):
    queries = [query(name, name, []) for name in ("ones", "zeros", "gap", "twice")]
    events = [
        event("ones", "impression", "u", 2),
        event("ones", "impression", "v", 1),
        event("ones", "impression", "u", 9),  # shown again, further down
        event("ones", "click", "w", 3),
        event("zeros", "impression", "u", 0, user_query="not asked"),
        event("gap", "impression", "u", 1),
        event("gap", "impression", "v", 3),
        event("twice", "impression", "u", 1),
        event("twice", "impression", "v", 1),
        event("events only", "impression", "u", 1, user_query="tv"),
        event("no text", "impression", "u", 1),
        event("q-1", "impression", "A01", 1),
    ]
    path = log_of(tmp_path, [*queries, *QUERIES], events)
    found, seen = taken(path, "ubi")
    pages = {page["query"]: page["documents"] for page in found}
    listed = {"ones": ["v", "u", "w"], "zeros": ["u"]}
    assert pages.pop("laptop") == ["B07", "B09", "B12"]
    listed["gap"] = ["u", "v"]
    numbers = ("pages_missing_positions", "pages_without_positions", "pages_without_text", "pages")
    assert [seen[name] for name in numbers] == [1, 1, 1, 6]
    # Both `tv` are in the log: one has hits, the other is known by its events.
    assert pages == {**listed, "tv": ["B12", "A01"]}
    assert sorted(page["documents"] for page in found if page["query"] == "tv") == [
        ["B12", "A01"], ["u"],
    ]  # fmt: skip
    shown, _ = taken(path, "ubi", shown="impressions")
    assert {page["query"]: page["documents"] for page in shown} == {**listed, "tv": ["A01"]}


def test_users_and_the_order_of_time(tmp_path):
    queries = [each | {"client_id": name} for each, name in zip(QUERIES, ["ann", ""], strict=True)]
    events = [each | {"client_id": None} for each in EVENTS]
    events[-1]["client_id"] = "bob"
    for missing in (False, True):
        path = log_of(tmp_path, queries, events[: -1 if missing else None])
        found, seen = taken(path, "ubi")
        users = [page.get("user") for page in found]
        assert users == ([None, None] if missing else ["bob", "ann"])
        assert "pages_without_user" not in seen
    third = query("q-3", "phone", ["P1"]) | {"client_id": None}
    found, seen = taken(log_of(tmp_path, [*queries, third], events), "ubi")
    assert seen["pages_without_user"] == 1
    log = tt.read_log(log_of(tmp_path, [*queries, third], events))
    assert log.pages == 3
    assert log.ordered
    later = [each | {"timestamp": "soon"} for each in queries]
    log = tt.read_log(log_of(tmp_path, later, [each | {"timestamp": "soon"} for each in events]))
    assert log.pages == 2
    assert not log.ordered


def test_empty_fields_are_counted(tmp_path):
    events = [
        event("a", "impression", "u", 1), event("a", "impression", "", 2),
        event("a", "impression", None, 3), event("a", "click", "u", 1), event("", "click", "u", 1),
        event("q-1", "impression", None, 1),  # Its hits are known.
    ]  # fmt: skip
    queries = [query("a", "tv", []), query("", "tv", ["x"]), query(None, "tv", ["y"]), QUERIES[1]]
    _, seen = taken(log_of(tmp_path, queries, events), "ubi")
    assert seen["pages_without_id"] == 2
    assert (seen["impressions_without_document"], seen["impressions"]) == (2, 1)
    assert seen["clicks_without_query"] == 1
    said = [*left_out(seen)]
    assert "queries without a query_id: 2 (50%)" in said
    assert "impressions that name no document: 2 (67%)" in said


def test_pages_that_list_a_document_twice(tmp_path):
    path = log_of(tmp_path, [query("a", "tv", ["x", "y", "x"]), *QUERIES], EVENTS)
    found, seen = taken(path, "ubi")
    assert found == PAGES
    assert seen["pages_left_out"] == 1
    assert "query a: 'x' is listed twice" in str(refused(path, "ubi", repeats="error"))


@pytest.mark.parametrize(
    ("records", "settings", "said"),
    [
        ([*QUERIES, *EVENTS[:2]], {}, r"product_hover \(1\).*expected names of actions"),
        ([*QUERIES, *EVENTS], {"actions": ["buy"]}, r"no event is a click; actions are click \(3"),
        ([*QUERIES, *EVENTS], {"actions": "click"}, r"actions: 'click' .*such as \['click'\]"),
        ([*QUERIES, *EVENTS], {"actions": []}, r"actions: \[\] .*one or more"),
        (EVENTS, {}, "there is no page; clicks without query: 2; pages without text: 1"),
        ([{"query_id": "a", "query_response_hit_ids": 3}], {}, "query a: 3 was found"),
        ([{"query_id": "a", "doc_ids": "['x']"}], {}, r"query_response_hit_ids.*a list of ids"),
        ([*QUERIES, *EVENTS], {"shown": "all"}, "shown: no event is an impression"),
        ([query("a", "tv", ["x", None]), *EVENTS], {}, "query a: the id of a hit is missing"),
    ],
)
def test_what_is_wrong(tmp_path, records, settings, said):
    path = lines(tmp_path / "ubi.ndjson", records)
    with pytest.raises(InputError, match=said):
        taken(path, "ubi", **settings)


def test_damaged_files(tmp_path):
    path = tmp_path / "ubi.ndjson"
    path.write_text(json.dumps(QUERIES[0]) + '\n{"query_id": "a", \n')
    assert "cannot be read" in str(refused(path, "ubi"))
    assert "cannot be read" in str(refused(tmp_path / "none.ndjson", "ubi"))

"""Files of sessions: written and read in pieces or whole, and refusals of wrong ones."""

import threading
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twotowers.errors import InputError
from twotowers.logs import sessions
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import page_arrays
from twotowers.logs.sessions import bias_features, conform, read_sessions, seen_in, write_sessions

BEYOND = "123456789012345678901234567890"  # no int64


def pages(**change):
    return {
        "split": ["train", "train", "test"],
        "query": [7, 8, 7],
        "documents": [[3, 1], [5], []],
        "clicks": [[0, 1], [1], []],
    } | change


def table(**change):
    return pa.table(pages(**change))


def read(path, **settings):
    return pa.Table.from_batches(read_sessions(path, **settings))


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "sessions.parquet"
    more = {"strength": [0.5, 1.0, 1.0], "user": ["a", "b", "a"], "height": [[9, 8], [7], []]}
    assert write_sessions(path, [table(**more)], {"pages": 3}) == 3
    found = read(path)
    assert found.column_names == [
        *("strength", "split", "query", "documents", "clicks", "user", "height")
    ]
    expected = pages(**more) | {"clicks": [[False, True], [True], []]}
    assert found.to_pydict() == expected
    assert found.schema.field("clicks").type == pa.list_(pa.bool_())
    assert found.schema.names[0] == "strength"
    assert bias_features(found.schema) == ["height"]
    assert seen_in(path) == {"pages": 3}


def test_ids_beyond_int64_are_text(tmp_path):
    path = tmp_path / "sessions.parquet"
    text = table(query=[BEYOND, "007", "7"], documents=[[BEYOND, "é"], ["x"], []])
    write_sessions(path, [text])
    found = read(path)
    assert found["query"].to_pylist() == [BEYOND, "007", "7"]
    assert found["documents"].to_pylist() == [[BEYOND, "é"], ["x"], []]


@pytest.mark.parametrize(
    "kind",
    [pa.large_list(pa.int32()), pa.list_(pa.uint64()), pa.list_(pa.dictionary(pa.int8(), "int64"))],
    ids=str,
)
def test_kinds_of_lists_and_integers_become_one(kind):
    if pa.types.is_dictionary(kind.value_type):
        values = pa.array([3, 1, 5]).dictionary_encode()
        documents = pa.ListArray.from_arrays([0, 2, 3, 3], values)
    else:
        documents = pa.array([[3, 1], [5], []], kind)
    found = conform(pa.RecordBatch.from_pydict(pages(documents=documents)), None)
    assert found["documents"].type == pa.list_(pa.int64())
    assert found["documents"].to_pylist() == [[3, 1], [5], []]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lists=st.lists(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=4), max_size=30),
    group=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 30), max_size=5),
    batch=st.integers(1, 40),
)
def test_streaming_in_pieces_equals_the_whole(tmp_path, monkeypatch, lists, group, cuts, batch):
    monkeypatch.setattr(sessions, "GROUP", group)
    whole = pa.table(
        {
            "split": pa.array(["train"] * len(lists), pa.string()),
            "query": pa.array(np.arange(len(lists)) % 3),
            "documents": pa.array([[d for d, _ in each] for each in lists], pa.list_(pa.int64())),
            "clicks": pa.array([[c for _, c in each] for each in lists], pa.list_(pa.bool_())),
        }
    )
    edges = [0, *sorted(min(cut, len(lists)) for cut in cuts), len(lists)]
    pieces = [whole.slice(a, b - a) for a, b in pairwise(edges)]
    write_sessions(tmp_path / "whole.parquet", [whole])
    write_sessions(tmp_path / "pieces.parquet", pieces)
    assert (tmp_path / "whole.parquet").read_bytes() == (tmp_path / "pieces.parquet").read_bytes()
    assert read(tmp_path / "pieces.parquet", batch=batch).equals(whole)
    assert all(
        len(each) <= batch for each in read_sessions(tmp_path / "whole.parquet", batch=batch)
    )


def test_reading_stops_where_its_reader_stops(tmp_path):
    path = tmp_path / "sessions.parquet"
    write_sessions(path, [table(query=[1, 2, 3])])
    found = read_sessions(path, batch=1)
    assert next(found)["query"].to_pylist() == [1]
    before = threading.active_count()
    found.close()
    assert threading.active_count() == before - 1


def test_a_reader_holds_a_batch_and_not_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "GROUP", 10)
    write_sessions(tmp_path / "s.parquet", [table()] * 20)
    assert pq.ParquetFile(tmp_path / "s.parquet").num_row_groups == 6
    assert [len(batch) for batch in read_sessions(tmp_path / "s.parquet", batch=25)][:2] == [25, 25]


def test_an_empty_log(tmp_path):
    assert write_sessions(tmp_path / "none.parquet", []) == 0
    (batch,) = read_sessions(tmp_path / "none.parquet")
    assert (len(batch), batch.schema) == (0, sessions.EMPTY)
    text = table(query=["a", "b", "c"]).slice(0, 0)
    write_sessions(tmp_path / "text.parquet", [text])
    (batch,) = read_sessions(tmp_path / "text.parquet")
    assert batch.schema.field("query").type == pa.string()


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"clicks": [[0, 1], [1, 0], []]}, "clicks", "row 2: 2 values and 1 documents"),
        ({"clicks": [[0, 1], [2], []]}, "clicks", "row 2: 2 was found.*0 or 1"),
        ({"clicks": [[-1, 1], [1], []]}, "clicks", "row 1: -1 was found"),
        ({"clicks": [[0, None], [1], []]}, "clicks", "row 1: a value is missing"),
        ({"clicks": [[0, 1], None, []]}, "clicks", "row 2: a value is missing"),
        ({"clicks": [[0.5, 1], [1], []]}, "clicks", "has type list<.*double"),
        ({"clicks": [1, 0, 1]}, "clicks", "a list per page"),
        ({"documents": [[3, 1], [None], []]}, "documents", "row 2: a value is missing"),
        ({"documents": [[1.5, 1], [1], []]}, "documents", "whole numbers or text"),
        ({"query": [7, None, 8]}, "query", "row 2: a value is missing"),
        ({"query": [[7], [8], [9]]}, "query", "a value per page"),
        (
            {"query": pa.array([7, 2**64 - 1, 8], pa.uint64())},
            "query",
            "row 2: 18446744073709551615",
        ),
        ({"split": [1, 2, 3]}, "split", "text"),
        ({"user": [1.5, 2.0, 3.0]}, "user", "whole numbers or text"),
        ({"height": [[1], [2], []]}, "height", "row 1: 1 values and 2 documents"),
        ({"strength": [1.0, None, 1.0]}, "strength", "row 2: a value is missing"),
        ({"deep": [[[1]], [[2]], [[3]]]}, "deep", "plain values"),
    ],
    # The text of an Arrow array holds its address, which differs between processes.
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_is_wrong_is_named(tmp_path, change, field, message):
    path = tmp_path / "sessions.parquet"
    pq.write_table(table(**change), path)
    for work in (lambda: read(path), lambda: write_sessions(tmp_path / "o", [table(**change)])):
        with pytest.raises(InputError, match=message) as error:
            work()
        assert error.value.field == field
    with pytest.raises(InputError, match=r"sessions\.parquet"):
        read(path)
    assert not (tmp_path / "o").exists()


def test_the_row_is_counted_over_batches(tmp_path):
    path = tmp_path / "sessions.parquet"
    pq.write_table(pa.concat_tables([table()] * 9 + [table(clicks=[[0, 1], [3], []])]), path)
    with pytest.raises(InputError, match="row 29: 3 was found"):
        read(path, batch=4)


def test_a_missing_column_and_one_there_twice(tmp_path):
    path = tmp_path / "sessions.parquet"
    pq.write_table(table().drop_columns(["clicks"]), path)
    with pytest.raises(InputError, match="clicks: the column is missing"):
        read(path)
    twice = table().append_column("query", pa.array([1, 2, 3]))
    with pytest.raises(InputError, match="query: there are 2 columns"):
        write_sessions(tmp_path / "o.parquet", [twice])


def test_a_page_beyond_the_last_position_is_refused(tmp_path):
    write_sessions(tmp_path / "o.parquet", [table().slice(0, 2)])
    log = Log.read(tmp_path / "o.parquet")
    assert page_arrays(log, positions=2).where.sum(1).tolist() == [2, 1]
    with pytest.raises(InputError, match="pages show 1 to 2 documents"):
        page_arrays(log, positions=1)

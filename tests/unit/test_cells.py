"""Counting out of core: against a plain loop, and within little memory."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twotowers as tt
from tests.logs import count_sessions
from tests.streams import counts_by_cell
from twotowers.commands.main import main
from twotowers.errors import InputError
from twotowers.logs import counted
from twotowers.logs.counted import Counts
from twotowers.logs.sessions import write_sessions

PAGE = st.tuples(
    st.sampled_from(["train", "test"]),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from(["q", "r", "9" * 30]),
    st.lists(st.tuples(st.sampled_from(["a", "b", "é'\""]), st.booleans(), st.integers(0, 1))),
)


def table(drawn):
    split, lane, query, shown = zip(*drawn, strict=True)
    return pa.table(
        {
            "a lane": lane,
            "split": split,
            "query": query,
            "documents": pa.array(
                [[d for d, _, _ in page] for page in shown], pa.list_(pa.string())
            ),
            "clicks": pa.array([[c for _, c, _ in page] for page in shown], pa.list_(pa.bool_())),
            "height": pa.array([[h for *_, h in page] for page in shown], pa.list_(pa.int64())),
        }
    )


def plain_counts(log, bias):
    """A loop over pages."""
    impressions, clicks = Counter(), Counter()
    for page in log.to_pylist():
        for at, document in enumerate(page["documents"]):
            height = (page["height"][at],) if bias else ()
            key = (page["a lane"], page["split"], page["query"], document, at + 1, *height)
            impressions[key] += 1
            clicks[key] += page["clicks"][at]
    return {key: (impressions[key], clicks[key]) for key in sorted(impressions)}


def cells(path):
    return counts_by_cell(pq.read_table(path))


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=st.lists(PAGE, min_size=1, max_size=25), bias=st.sampled_from([(), ("height",)]))
def test_equals_a_plain_loop(tmp_path, drawn, bias):
    log = table(drawn)
    write_sessions(tmp_path / "s.parquet", [log])
    count_sessions(tmp_path / "s.parquet", tmp_path / "c.parquet", bias=bias)
    found, expected = cells(tmp_path / "c.parquet"), plain_counts(log, bias)
    assert found == expected
    assert list(found) == list(expected)  # sorted, text by its letters' code points


def large(pages=20_000):
    rng = np.random.default_rng(0)
    query = rng.integers(500, size=pages)
    documents = (
        query[:, None] * 40 + rng.permuted(np.tile(np.arange(40), (pages, 1)), axis=1)[:, :10]
    )
    clicks = rng.random((pages, 10)) < 0.2
    return pa.table(
        {
            "split": ["train"] * pages,
            "query": query,
            "documents": pa.array(list(documents)),
            "clicks": pa.array(list(clicks)),
        }
    ), (query, documents, clicks)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "sessions.parquet"
    found, arrays = large()
    write_sessions(path, [found])
    return path, arrays


def test_several_files_and_any_memory_give_the_same_bytes(log, tmp_path, monkeypatch):
    path, _ = log
    whole, parts = tmp_path / "whole.parquet", tmp_path / "counted.parquet"
    monkeypatch.setattr(counted, "GROUP", 1000)
    count_sessions(path, whole)
    found = pq.read_table(path)
    for number, rows in enumerate((found.slice(0, 7_001), found.slice(7_001))):
        pq.write_table(rows, tmp_path / f"part-{number}.parquet")
    for memory in ("3GB", "1MB"):
        command = ["count", str(tmp_path / "part-*"), "--format", "pages"]
        command += ["--memory", memory, "--out", str(parts)]
        assert main(command) == 0
        assert pq.read_table(whole).equals(pq.read_table(parts))
    assert not list(tmp_path.glob(".*"))


def test_what_is_wrong_is_named(log, tmp_path):
    path, _ = log
    found = pq.read_table(path)
    wrong = found.slice(15_000, 1).set_column(3, "clicks", pa.array([[True]]))
    pq.write_table(pa.concat_tables([found.slice(0, 15_000), wrong]), tmp_path / "wrong.parquet")
    with pytest.raises(InputError, match="row 15001: 1 values and 10 documents"):
        count_sessions(tmp_path / "wrong.parquet", tmp_path / "c.parquet")
    with pytest.raises(InputError, match="'heigth'"):
        count_sessions(path, tmp_path / "c.parquet", bias=["heigth"])
    with pytest.raises(InputError, match="memory: 'a lot'"):
        tt.read_log(path, memory="a lot")
    assert {each.name for each in tmp_path.iterdir()} == {"wrong.parquet"}


def test_cells_that_are_there_twice_are_added_up(tmp_path):
    once = pa.record_batch(
        {
            "split": ["a"],
            "query": ["q"],
            "document": ["d"],
            "position": pa.array([1], pa.int32()),
            "impressions": [3],
            "clicks": [1],
        }
    )
    assert Counts.of_batches([once, once]).write(tmp_path / "c.parquet") == 1
    assert cells(tmp_path / "c.parquet") == {("a", "q", "d", 1): (6, 2)}

"""Counting out of core: the same bytes in any memory, and what is wrong is named."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.logs import count_sessions
from twotowers.commands.main import main
from twotowers.logs import counted
from twotowers.logs.sessions import write_sessions


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
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "sessions.parquet"
    write_sessions(path, [large()])
    return path


def test_several_files_and_any_memory_give_the_same_bytes(log, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole.parquet", tmp_path / "counted.parquet"
    monkeypatch.setattr(counted, "GROUP", 1000)
    count_sessions(log, whole)
    found = pq.read_table(log)
    for number, rows in enumerate((found.slice(0, 7_001), found.slice(7_001))):
        pq.write_table(rows, tmp_path / f"part-{number}.parquet")
    for memory in ("3GB", "1MB"):
        command = ["count", str(tmp_path / "part-*"), "--format", "pages"]
        command += ["--memory", memory, "--out", str(parts)]
        assert main(command) == 0
        assert pq.read_table(whole).equals(pq.read_table(parts))
    assert not list(tmp_path.glob(".*"))

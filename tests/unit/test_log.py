"""Counts of logs agree with a group-by of their rows, whatever the ids, the blocks and the keys."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from twotowers.files import blocks
from twotowers.logs import counted
from twotowers.logs import log as logs
from twotowers.logs.counted import Counts
from twotowers.logs.log import Log

IDS = {
    "small": [5, 6, 8],
    "negative": [-3, 0, 2],
    "wide": [-7, 10**15, 2**62],
    "low": [-(2**31) - 1, -5, 0],
    "ends of int32": [-(2**31), 0, 2**31 - 1],
    "text": ["b", "a", "é"],
}
BY = ["query", "document", "position", "last_click", "device"]


def drawn(kind: str, pages: int = 300) -> list[dict]:
    rng = np.random.default_rng(1)
    ids = IDS[kind]
    found = []
    for _ in range(pages):
        shown = rng.integers(0, 3, rng.integers(1, 5)).tolist()
        found.append(
            {
                "query": ids[rng.integers(3)],
                "documents": [ids[each] for each in shown],
                "clicks": rng.integers(0, 2, len(shown)).astype(bool).tolist(),
                "device": rng.choice(["m", "d"], len(shown)).tolist(),
            }
        )
    return found


def rows_of(pages: list[dict]) -> pd.DataFrame:
    rows = []
    for page in pages:
        last = 0
        for place, one in enumerate(
            zip(page["documents"], page["device"], page["clicks"], strict=True), start=1
        ):
            document, device, click = one
            rows.append([page["query"], document, place, last, device, 1, int(click)])
            last = place if click else last
    return pd.DataFrame(rows, columns=[*BY, "impressions", "clicks"])


def batches_of(pages: list[dict]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(pages[at : at + 37]) for at in range(0, len(pages), 37)]


def check(counts: Counts, rows: pd.DataFrame) -> None:
    by = [*counts.columns]
    expected = rows.groupby(by, as_index=False)[["impressions", "clicks"]].sum()
    assert counts.table().to_pandas().to_numpy().tolist() == expected.to_numpy().tolist()


@pytest.mark.parametrize("memory", [1 << 30, 16 * 350])
@pytest.mark.parametrize("widest", [logs.WIDEST, 3000])
@pytest.mark.parametrize("kind", IDS)
def test_counts_are_those_of_a_group_by(kind, widest, memory, monkeypatch):
    """In one block and in many, in memory and in a file, and with keys that hold few columns."""
    monkeypatch.setattr(counted, "SIZE", 100)
    for module in (logs, counted):
        monkeypatch.setattr(module, "WIDEST", widest)
    monkeypatch.setattr(blocks, "CELLS", 13)
    pages = drawn(kind)
    log, rows = Log.of_batches(batches_of(pages), memory=memory), rows_of(pages)
    counts = log.count(BY)
    check(counts, rows)
    check(counts.count(["document", "device"]), rows)
    check(Counts.of_batches(counts.table().to_batches(max_chunksize=11)), rows)
    chosen = np.random.default_rng(2).random(len(pages)) < 0.4
    some = [page for page, own in zip(pages, chosen, strict=True) if own]
    check(log.part(chosen).count(["query", "position"]), rows_of(some))


def test_text_of_a_csv_file_is_a_number_if_all_of_it_could_be():
    for ids, expected in ((["10", "9"], [9, 10]), (["10", "09"], ["09", "10"])):
        pages = {"query": ids, "documents": [["a"], ["a"]], "clicks": [[True], [False]]}
        log = Log.of_batches([pa.record_batch(pages)], texts=True)
        assert log.count(["query"]).values("query").to_pylist() == expected

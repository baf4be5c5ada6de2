"""What users saw of a page, by a rule: against a plain loop, and in every command."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twotowers as tt
from tests.logs import clicked_rows
from twotowers.commands.main import main
from twotowers.errors import InputError
from twotowers.logs.opening import only_seen
from twotowers.logs.sessions import Stream

PAGE = st.lists(st.booleans(), max_size=5)


@given(pages=st.lists(PAGE, min_size=1, max_size=8), further=st.integers(0, 6), cut=st.integers(1))
def test_equals_a_plain_loop(pages, further, cut):
    whole = pa.record_batch(
        {
            "split": ["log"] * len(pages),
            "query": [*range(len(pages))],
            "documents": pa.array([[*range(len(page))] for page in pages], pa.list_(pa.int64())),
            "clicks": pa.array(pages, pa.list_(pa.bool_())),
            "height": pa.array([[10 * n for n, _ in enumerate(page)] for page in pages],
                               pa.list_(pa.int64())),
        }
    )  # fmt: skip
    cut %= len(pages)
    log = only_seen(Stream([whole.slice(0, cut), whole.slice(cut)], {"pages": 8}), further)
    found = [row for batch in log.batches for row in batch.to_pylist()]
    expected, documents = [], 0
    for number, page in enumerate(pages):
        lowest = max((place for place, click in enumerate(page, start=1) if click), default=0)
        kept = page[: lowest + further]
        documents += len(page) - len(kept)
        heights = [10 * place for place in range(len(kept))]
        if kept:
            row = {"split": "log", "query": number, "documents": [*range(len(kept))]}
            expected.append({**row, "clicks": kept, "height": heights})
    assert found == expected
    left_out = {"documents_not_seen": documents, "pages_not_seen": len(pages) - len(expected)}
    assert log.seen == {"pages": 8, **left_out}


def test_a_log_by_the_rule_is_one_without_what_was_not_seen(tmp_path, capsys):
    rows = clicked_rows(300, "tv", "ram")
    lowest = rows["position"].where(rows["clicks"] > 0, 0).groupby(rows["session"]).transform("max")
    kept = rows[rows["position"] <= lowest + 1]
    log = tt.read_log(rows, seen="clicked+1")
    assert log.seen["documents_not_seen"] == len(rows) - len(kept)
    pd.testing.assert_frame_equal(log.count().frame(), tt.read_log(kept).count().frame())
    rows.to_csv(tmp_path / "log.csv", index=False)
    main(["propensities", str(tmp_path / "log.csv"), "--seen", "clicked+1"])
    assert "biases propensities" in capsys.readouterr().out


@pytest.mark.parametrize("rule", ["clicked", "clicked+-1", "all", "clicked+1.5", "clicked+12345"])
def test_other_rules_are_refused(tmp_path, rule):
    clicked_rows(3, "tv").to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"seen: .* \(expected clicked\+0"):
        tt.read_log(tmp_path / "log.csv", seen=rule)


def test_counted_logs_have_no_pages(tmp_path):
    cells = clicked_rows(3, "tv").drop(columns="session").assign(impressions=1)
    with pytest.raises(InputError, match="format 'cells' has no such setting"):
        tt.read_log(cells, seen="clicked+1")

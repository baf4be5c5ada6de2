"""The reader of the Yandex sample, against a naive reader, broken records, and the sample."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.logs import YANDEX, cells_of, counts_by_cell, needs_yandex, seen
from twotowers.errors import InputError
from twotowers.logs.formats import yandex
from twotowers.logs.formats.yandex import read as read_yandex


def write(folder, text):
    path = folder / "sample"
    path.write_text(text)
    return path


def record(query, region, documents, clicks):
    return f"{query}_{region}\t{','.join(map(str, documents))} :" + " ,".join(
        f" {document}" for document in clicks
    )


results = st.tuples(
    st.integers(1, 3),
    st.integers(0, 2),
    st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(1, 7), max_size=5),
)


@settings(max_examples=100)
@given(
    st.lists(results, min_size=1, max_size=8),
    st.sampled_from(["; ", ";", "  ;  ", ";\n"]),
    st.sampled_from([3, yandex.CHUNK]),
)
def test_equals_a_naive_count(tmp_path_factory, pages, separator, chunk):
    text = separator.join(record(*each) for each in pages) + separator
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yandex, "CHUNK", chunk)
        log = cells_of(read_yandex(write(tmp_path_factory.mktemp("yandex"), text)))
    shown, clicked = Counter(), Counter()
    off = repeated = 0
    for query, region, documents, clicks in pages:
        for position, document in enumerate(documents, start=1):
            key = (query * 10_000 + region, document, position)
            shown[key] += 1
            clicked[key] += document in clicks
            repeated += max(clicks.count(document) - 1, 0)
        off += sum(document not in documents for document in clicks)
    assert counts_by_cell(log) == {key: (shown[key], clicked[key]) for key in shown}
    assert seen(log) == {
        "pages": len(pages),
        "clicks": sum(len(clicks) for *_, clicks in pages),
        "repeated_clicks": repeated,
        "clicks_off_page": off,
    }


@pytest.mark.parametrize(
    "bad",
    ["", "1\t5,6 :", "a_0\t5,6 :", "1_12345\t5,6 :", "1_0 5,6 :", "1_0\t5,6", "1_0\t :",
     "1_0\t5,,6 :", "1_0\t5,x :", "1_0\t5,-6 :", "1_0\t5,9999999999999999999 :",
     "1_0\t5,6 : x", "1_0\t5,6 : 5 6", "1_0\t5,6 : 5 ,", "1_0\t5,6 : 5é"],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, bad):
    path = write(tmp_path, f"1_0\t5,6 : 5; {bad}; 1_0\t5,6 :")
    with pytest.raises(InputError, match=r"record 2: .* was found") as error:
        cells_of(read_yandex(path))
    assert error.value.path == path
    assert error.value.expected


@needs_yandex
def test_the_sample():
    log = cells_of(read_yandex(YANDEX))
    counts = seen(log)
    assert counts["pages"] == 35_064
    assert counts["clicks_off_page"] == 417
    assert len(log["query"].unique()) == 20

    position, impressions, clicks = (
        log[name].to_numpy() for name in ("position", "impressions", "clicks")
    )
    assert np.bincount(position, impressions)[1:].tolist() == [35_064] * 10
    ctr = (np.bincount(position, clicks)[1:] / 35_064).round(3)
    # shared/data/README.md
    assert ctr.tolist() == [0.257, 0.249, 0.170, 0.154, 0.106, 0.073, 0.069, 0.047, 0.050, 0.045]
    left_out = counts["repeated_clicks"] + counts["clicks_off_page"]
    assert clicks.sum() == counts["clicks"] - left_out

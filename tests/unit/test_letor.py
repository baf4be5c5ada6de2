"""The LETOR reader: its rules in plain Python, quirks, broken files, and real files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from twotowers.datasets import letor
from twotowers.datasets.letor import read_letor
from twotowers.errors import InputError

DATA = Path(__file__).parents[3] / "shared" / "data"
real_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="real data: ../shared/data is not on this machine"
)


def write(tmp_path, text) -> Path:
    path = tmp_path / "letor.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_types_shapes_and_values(tmp_path):
    path = write(tmp_path, "2 qid:7 1:0.5 2:-3 3:1e-3\n0 qid:7 1:1. 2:.5 3:+4\n1 qid:9 2:8\n")
    rankings = read_letor(path, width=3)
    assert [rankings.query.dtype, rankings.document.dtype] == [np.int64, np.int32]
    assert [rankings.label.dtype, rankings.features.dtype] == [np.float32, np.float32]
    assert rankings.query.tolist() == [7, 7, 9]
    assert rankings.document.tolist() == [0, 1, 0]
    assert rankings.label.tolist() == [2, 0, 1]
    expected = np.array([[0.5, -3, 1e-3], [1, 0.5, 4], [0, 8, 0]], np.float32)
    np.testing.assert_array_equal(rankings.features, expected)


@pytest.mark.parametrize(
    "text",
    [
        "1 qid:1 1:2\n0 qid:1 2:3\n",
        "1 qid:1 1:2\r\n0 qid:1 2:3\r\n",
        "1 qid:1 1:2\n0 qid:1 2:3",
        "1 qid:1 1:2 \t \n\n  \n0 qid:1 2:3 # doc = GX:1 2:9 # more\n# the end",
        "# header\n  1\tqid:1  1:2#x\n0 qid:1 1:0 2:3",
        "\ufeff1 qid:1 1:2\n0 qid:1 2:3\n",
    ],
    ids=["plain", "crlf", "no last newline", "blanks, comments", "header, tab", "byte order mark"],
)
def test_layout_does_not_matter(tmp_path, text):
    rankings = read_letor(write(tmp_path, text), width=2)
    assert rankings.label.tolist() == [1, 0]
    assert rankings.features.tolist() == [[2, 0], [0, 3]]


def test_declared_width_pads_with_zeros_and_rows_may_have_no_feature(tmp_path):
    rankings = read_letor(write(tmp_path, "1 qid:1 2:5\n0 qid:1\n"), width=4)
    assert rankings.features.tolist() == [[0, 5, 0, 0], [0, 0, 0, 0]]


def test_recurring_query_is_merged_into_its_first_occurrence(tmp_path):
    text = "0 qid:5 1:1\n1 qid:3 1:2\n2 qid:5 1:3\n3 qid:4 1:4\n4 qid:3 1:5\n"
    rankings = read_letor(write(tmp_path, text), width=1)
    assert rankings.query.tolist() == [5, 5, 3, 3, 4]
    assert rankings.document.tolist() == [0, 1, 0, 1, 0]
    assert rankings.label.tolist() == [0, 2, 1, 4, 3]
    assert rankings.features[:, 0].tolist() == [1, 3, 2, 5, 4]


def test_numbers_beyond_float32_become_its_largest(tmp_path):
    # Istella writes the largest float64 for "very large".
    rankings = read_letor(
        write(tmp_path, "0 qid:1 1:1.79769313486e+308 2:-1e999 3:1e-99\n"), width=3
    )
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(rankings.features, [[largest, -largest, 0]])


BROKEN = {
    "prose": ("Once upon a time\n", 1, "Once"),
    "csv": ("1,2,3\n", 1, "1,2,3"),
    "label nan": ("0 qid:1 1:1\nnan qid:1 1:1\n", 2, "label"),
    "label too high": ("0 qid:1 1:1\n\n5 qid:1 1:1\n", 3, "0 to 4"),
    "label negative": ("-1 qid:1 1:1\n", 1, "label"),
    "no qid": ("# c\n1 1:0.5 2:0.3\n", 2, "no qid"),
    "only a label": ("1 qid:1\n1\n", 2, "no qid"),
    "qid is a word": ("1 qid:x1 1:2\n", 1, "x1"),
    "qid is empty": ("1 qid: 1:2\n", 1, "qid:"),
    "qid is too long": ("1 qid:12345678901234567890 1:2\n", 1, "qid:1234"),
    "index 0": ("1 qid:1 1:2\n1 qid:1 0:2\n", 2, "0:2"),
    "index beyond width": ("1 qid:1 1:2 4:2\n", 1, "up to 3"),
    "index that would need terabytes": ("1 qid:1 4000000000:1\n", 1, "up to 3"),
    "index twice": ("1 qid:1 1:2 2:3 2:4\n", 1, "2:4"),
    "index descends": ("1 qid:1 1:2\n1 qid:1 3:2 2:4\n", 2, "sorted"),
    "index is a word": ("1 qid:1 a:2\n", 1, "a:2"),
    "value nan": ("1 qid:1 1:2 2:nan\n", 1, "not a number"),
    "value is a word": ("1 qid:1 1:2 2:x\n", 1, "2:x"),
    "value is cut": ("1 qid:1 1:2 2:1e\n", 1, "2:1e"),
    "no colon": ("1 qid:1 1:2 17\n", 1, "17"),
    "UTF-16": ("1 qid:1 1:2\n".encode("utf-16"), 1, "xff"),
    "old Mac line ends": (b"1 qid:1 1:2\r1 qid:2 1:2\r", 1, "qid:2"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", 1, "PNG"),
    "no row": ("\n# only a comment\n", None, "no row"),
}


@pytest.mark.parametrize(("text", "line", "word"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_broken_files_are_refused_by_name_line_and_expectation(
    tmp_path, monkeypatch, text, line, word, chunk
):
    monkeypatch.setattr(letor, "CHUNK_BYTES", chunk)
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_letor(path, width=3, label_max=4)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert word in str(caught.value)
    assert caught.value.expected


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_letor(tmp_path / "absent.txt", width=3)


def test_a_packed_file_is_unpacked(tmp_path):
    path = tmp_path / "letor.txt.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 2:5\n"))
    assert read_letor(path, width=2).features.tolist() == [[0, 5]]


MQ2008, MSLR = "MQ2008/Fold1", "mslr_web30k_sample"


@real_data
@pytest.mark.parametrize(
    ("name", "width", "queries", "labels"),
    [
        (f"{MQ2008}/train.txt", 46, 471, [7820, 1223, 587]),
        (f"{MQ2008}/test.txt", 46, 156, [2319, 378, 177]),
        (f"{MSLR}/test.txt", 136, 18, [1023, 604, 243, 20, 10]),
    ],
)
def test_real_files_have_their_counts(name, width, queries, labels):
    rankings = read_letor(DATA / name, width=width, label_max=4)
    assert rankings.features.shape == (sum(labels), width)
    assert len(rankings.queries) == queries
    assert np.bincount(rankings.label.astype(int)).tolist() == labels

"""The reader of the files of Baidu-ULTR-UVA: sessions, features, texts and annotations."""

import hashlib
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings
from twotowers.logs.formats.baidu import (
    EMBEDDING,
    LEXICAL,
    OFFSET,
    POSITIONS,
    annotated_texts,
    documents_of,
    feature_columns,
    read,
    read_annotations,
    texts_of,
)
from twotowers.logs.log import Log
from twotowers.logs.observed_pages import observed_pages
from twotowers.logs.page_arrays import page_arrays
from twotowers.logs.sessions import write_sessions

# Sessions 3 (a query shown before), 5 and 9, with gaps in numbers and in positions.
ROWS = {
    "query_no": [3, 3, 3, 5, 5, 9, 9, 9],
    "query_id": ["0", "0", "0", "1", "1", "2", "2", "2"],
    "query_md5": ["a", "a", "a", "b", "b", "a", "a", "a"],
    "url_md5": ["x", "y", "z", "x", "w", "z", "x", "v"],
    "position": [1, 2, 5, 2, 3, 1, 4, 22],
    "click": [0, 1, 0, 0, 0, 1, 1, 0],
    "serp_height": [10, 20, 30, 40, 50, 60, 70, 80],
}
ANNOTATED = {
    "query_no": [0, 0, 2, 2, 2],
    "query_id": ["7", "7", "7", "7", "7"],
    "query_md5": ["a", "a", "c", "c", "c"],
    "label": [0, 4, 1, 0, 2],
    "frequency_bucket": [0, 0, 9, 9, 9],
}


def columns_of(rows, *, width=3, half=True, embedding=True):
    """Features and tokens that tell rows with other documents apart."""
    numbers = np.arange(len(rows["query_no"]), dtype=float)
    found = {name: numbers * (place - 5) for place, name in enumerate(LEXICAL)}
    if embedding:
        vectors = [[number / 8 + place for place in range(width)] for number in numbers]
        kind = pa.float16() if half else pa.float64()
        vectors = [np.array(each, np.float16 if half else float) for each in vectors]
        found[EMBEDDING] = pa.array(vectors, pa.list_(kind))
    for name in ("query", "title", "abstract"):
        found[name] = [
            [OFFSET + row, *range(OFFSET, OFFSET + row % 3)] for row in range(len(numbers))
        ]
    return found


def written(path, rows=ROWS, *, batch=3, **options):
    table = pa.table({**rows, **columns_of(rows, **options)})
    pa.feather.write_feather(table, path, chunksize=batch)
    return path


def pages_of(path, **options):
    log = read(path, **options)
    return [page for batch in log.batches for page in batch.to_pylist()], log.seen


def both(batches):
    return (np.concatenate(each) for each in zip(*batches, strict=True))


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_sessions_straddle_batches_and_keep_their_gaps(tmp_path, batch):
    found, seen = pages_of(written(tmp_path / "part-2_split-7.feather", batch=batch))
    assert [page[POSITIONS] for page in found] == [[1, 2, 5], [2, 3], [1, 4, 22]]
    assert [page["clicks"] for page in found] == [
        [False, True, False], [False, False], [True, True, False],
    ]  # fmt: skip
    assert {page["split"] for page in found} == {"part-2"}
    first, second, third = found
    assert first["query"] == third["query"] != second["query"]
    # An address is another document for another query, and the same for the same.
    assert first["documents"][0] == third["documents"][1] != second["documents"][0]
    assert first["documents"][2] == third["documents"][0]
    assert len({number for page in found for number in page["documents"]}) == 6
    assert seen == {"pages": 3, "clicks": 3, "repeated_clicks": 0, "clicks_off_page": 0}


def test_rows_in_any_order_and_further_columns(tmp_path):
    rows = {name: [values[at] for at in (2, 0, 1)] for name, values in ROWS.items()}
    (page,), _ = pages_of(written(tmp_path / "log.feather", rows), bias=["serp_height"])
    assert page[POSITIONS] == [1, 2, 5]
    assert page["serp_height"] == [10, 20, 30]
    assert page["clicks"] == [False, True, False]
    assert page["split"] == "log"


def test_numbers_of_documents_are_the_same_everywhere(tmp_path):
    (page, *_), _ = pages_of(written(tmp_path / "log.feather"))
    for text, number in (("a", page["query"]), ("a x", page["documents"][0])):
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        assert number == int.from_bytes(digest, "little") // 2


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("embedding", [True, False])
def test_documents_of_both_sets(tmp_path, half, embedding):
    path = written(tmp_path / "part-0_split-0.feather", half=half, embedding=embedding)
    # The second file repeats documents.
    written(tmp_path / "part-1_split-0.feather", half=half, embedding=embedding)
    numbers, features = both(documents_of(tmp_path / "part-*"))
    documents = [number for page in pages_of(path)[0] for number in page["documents"]]
    assert numbers.tolist() == list(dict.fromkeys(documents))
    assert features.shape == (6, 15 if embedding else 12)
    assert features.dtype == np.float32
    # The last document is that of the last row, of number 7.
    raw = 7.0 * (np.arange(12) - 5)
    np.testing.assert_allclose(features[-1, :12], np.sign(raw) * np.log1p(abs(raw)), rtol=1e-6)
    if embedding:
        np.testing.assert_allclose(features[-1, 12:], 7 / 8 + np.arange(3))
    assert feature_columns(path) == [*LEXICAL, *[EMBEDDING] * embedding]


def test_chosen_columns(tmp_path):
    path = written(tmp_path / "log.feather")
    _, embedding = both(documents_of(path, columns=[EMBEDDING]))
    assert embedding.shape == (6, 3)
    with pytest.raises(InputError, match=r"'bm52'.*did you mean 'bm25'"):
        next(documents_of(path, columns=["bm52"]))
    # Another set, without embeddings.
    path = written(tmp_path / "other.feather", embedding=False)
    with pytest.raises(InputError, match=f"{EMBEDDING}: the column is missing"):
        next(documents_of(path, columns=[EMBEDDING]))


def test_texts(tmp_path):
    path = written(tmp_path / "log.feather")
    found = [row for batch in texts_of(path) for row in batch.to_pylist()]
    assert [row["title"][0] for row in found] == [0, 1, 2, 3, 4, 7]
    assert found[2]["abstract"] == [2, 0, 1]
    documents = [number for page in pages_of(path)[0] for number in page["documents"]]
    assert [row["document"] for row in found] == list(dict.fromkeys(documents))
    bad = {**ROWS, **columns_of(ROWS)}
    bad["title"] = [[11], [12], [13, 14], [15], [16, 7], [], [18], [19]]
    pa.feather.write_feather(pa.table(bad), path)
    with pytest.raises(InputError, match=r"title: row 5: 7 was found .*token ids from 10"):
        list(texts_of(path))


def test_annotations_of_one_query_id_are_two_queries(tmp_path):
    path = written(tmp_path / "validation.feather", ANNOTATED, batch=2)
    found = read_annotations(path)
    assert isinstance(found, Rankings)
    assert found.query.tolist() == [0, 0, 1, 1, 1]
    assert found.document.tolist() == [0, 1, 0, 1, 2]
    assert found.label.tolist() == [0, 4, 1, 0, 2]
    assert found.features.shape == (5, 15)
    texts = [row for batch in annotated_texts(path) for row in batch.to_pylist()]
    assert [row["query"][0] for row in texts] == [0, 1, 2, 3, 4]


def test_gaps_stay_where_they_are(tmp_path):
    path = tmp_path / "pages.parquet"
    log = read(written(tmp_path / "part-0_split-0.feather"))
    write_sessions(path, log.batches)
    found = page_arrays(Log.read(path), positions=22, places=POSITIONS)
    assert [np.flatnonzero(row).tolist() for row in found.where] == [[0, 1, 4], [1, 2], [0, 3, 21]]
    assert found.pair[0, 4] == found.pair[2, 0]
    assert np.argwhere(found.clicks).tolist() == [[0, 1], [2, 0], [2, 3]]
    closed = page_arrays(Log.read(path), positions=22)
    assert closed.where.sum(1).tolist() == [3, 2, 3]
    assert closed.where[:, 0].all()
    pages = observed_pages(path, {"train": 1.0}, positions=22, seed=0, places=POSITIONS)
    impressions = pages.counts("train").impressions.sum((0, 1))
    assert np.flatnonzero(impressions).tolist() == [0, 1, 2, 3, 4, 21]
    with pytest.raises(InputError, match=r"positions: row 3: 22 was found .*from 1 to 10"):
        page_arrays(Log.read(path), positions=10, places=POSITIONS)
    with pytest.raises(InputError, match="serp_height: the column is missing"):
        page_arrays(Log.read(path), positions=22, places="serp_height")


def changed(name, at, value):
    return {**ROWS, name: [*ROWS[name][:at], value, *ROWS[name][at + 1 :]]}


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (changed("position", 1, 0), r"position: row 2: 0 was found .*whole number from 1"),
        (changed("position", 1, 1), r"position: row 2: 1 is the position of two rows"),
        (changed("position", 4, None), r"position: row 5: a value is missing"),
        (changed("click", 5, -1), r"click: row 6: -1 was found"),
        (changed("query_md5", 4, "c"), r"query_md5: row 5: c in a session of another query"),
        (changed("url_md5", 6, None), r"url_md5: row 7: a value is missing"),
        (changed("query_no", 7, 3), r"query_no: row 8: 3 was there before other sessions"),
        ({**ROWS, "url_md5": list(range(8))}, r"url_md5: has type int64 .*expected text"),
        ({k: v for k, v in ROWS.items() if k != "click"}, r"click: the column is missing"),
        (ANNOTATED, r"url_md5: the column is missing"),
    ],
)
def test_wrong_rows(tmp_path, rows, complaint):
    path = written(tmp_path / "log.feather", rows, batch=8)
    with pytest.raises(InputError, match=complaint) as error:
        pages_of(path)
    assert "log.feather" in str(error.value)


def test_widths_differ_between_files(tmp_path):
    written(tmp_path / "part-0_split-0.feather", width=3)
    other = {**ROWS, "url_md5": list("abcdefgh")}
    written(tmp_path / "part-0_split-1.feather", other, width=4)
    with pytest.raises(InputError, match=r"split-1.*row 1: a vector of 4 numbers .*3 numbers"):
        list(documents_of(tmp_path / "part-*"))


def test_wrong_annotations(tmp_path):
    path = written(tmp_path / "validation.feather", {**ANNOTATED, "label": [0, 1, -1, 0, 2]})
    with pytest.raises(InputError, match=r"label: row 3: -1 was found"):
        read_annotations(path)
    written(path, {**ANNOTATED, "query_no": [0, 0, 2, 2, 0]})
    with pytest.raises(InputError, match=r"query_no: row 5: 0 was there before other queries"):
        read_annotations(path)
    with pytest.raises(InputError, match=r"label: the column is missing"):
        read_annotations(written(path, ROWS))


def test_a_file_without_rows(tmp_path):
    path = tmp_path / "log.feather"
    empty = {"query_no": [], "query_md5": [], "url_md5": [], "position": [], "click": []}
    pa.feather.write_feather(pa.table({n: pa.array(v, pa.null()) for n, v in empty.items()}), path)
    assert pages_of(path)[0] == []


def peak(path) -> int:
    """The most bytes while a log is read, of Python, NumPy and Arrow."""
    tracemalloc.start()
    highest = 0
    for batches in (read(path).batches, documents_of(path)):
        before = pa.total_allocated_bytes()
        for _ in batches:
            highest = max(highest, pa.total_allocated_bytes() - before)
    highest += tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Eight times the rows need no more memory, in batches of one size."""
    peaks = []
    for name, sessions in (("small", 400), ("large", 3200)):
        rows = 10 * sessions
        table = pa.table(
            {
                "query_no": np.arange(rows) // 10,
                "query_md5": [f"{at // 10:032x}" for at in range(rows)],
                "url_md5": [f"{at:032x}" for at in range(rows)],
                "position": np.arange(rows) % 10 + 1,
                "click": np.arange(rows) % 7 == 0,
                EMBEDDING: pa.FixedSizeListArray.from_arrays(
                    pa.array(np.ones(64 * rows, np.float16)), 64
                ),
            }
        )
        path = tmp_path / f"{name}.feather"
        pa.feather.write_feather(table, path, chunksize=2000)
        peaks.append(peak(path))
    small, large = peaks
    assert small > 100_000
    # The large log has 28,800 documents more, of eight bytes each.
    assert large - small < 16 * 28_800

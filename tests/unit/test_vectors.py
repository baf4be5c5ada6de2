"""Logs of documents that are known by features: the reader of their files, and their own file."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.parse_dataset import main as parse
from twotowers.datasets.download import locate, manifest
from twotowers.datasets.sources import source
from twotowers.errors import InputError
from twotowers.files.artefacts import sha256
from twotowers.files.rankings import read_rankings
from twotowers.logs.described import read_documents, write_documents
from twotowers.logs.formats.vectors import documents_of, numbers_of, read, read_annotations
from twotowers.logs.sessions import read_sessions, seen_in
from twotowers.splits import ANNOTATIONS, DOCUMENTS, LOG, PAGES

A, B, C = [0.5, 1.0, -2.0], [2.0, 0.0, 0.25], [0.0, 0.0, 1.0]
NAN, MISSING = [1.0, float("nan"), 0.0], [1.0, None, 2.0]
PAGE = {
    "query_doc_features": [[A, B], [B], [A, C, B]],
    "positions": [[1, 3], [1], [1, 2, 3]],
    "clicks": [[0, 1], [0], [2, 0, 0]],
}
NAMED = {"dashed": "part-{}-split-0.parquet", "underscored": "part-{}_split-0.parquet"}


def numbers(batches, column="documents"):
    return [row for batch in batches for row in batch[column].to_pylist()]


def ids(*vectors):
    return numbers_of(np.array(vectors, np.float32)).tolist()


def written(path, columns, kind=None):
    table = pa.table(columns)
    if kind is not None:
        place = table.schema.get_field_index("query_doc_features")
        wide = pa.list_(pa.list_(kind))
        table = table.set_column(
            place, "query_doc_features", table["query_doc_features"].cast(wide)
        )
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("column", ["query_doc_features", "features"])
def test_both_names_of_the_column_and_any_floats(tmp_path, column, kind):
    path = written(tmp_path / "log.parquet", PAGE, kind)
    table = pq.read_table(path)
    renamed = [column if name == "query_doc_features" else name for name in table.column_names]
    pq.write_table(table.rename_columns(renamed), path)
    log = read(path, bias=["positions"])
    batches = list(log.batches)
    assert numbers(batches) == [ids(A, B), ids(B), ids(A, C, B)]
    assert numbers(batches, "clicks") == [[False, True], [False], [True, False, False]]
    assert numbers(batches, "positions") == PAGE["positions"]
    assert numbers(batches, "query") == [0, 0, 0]
    assert (log.seen["pages"], log.seen["repeated_clicks"]) == (3, 1)


@pytest.mark.parametrize("name", NAMED.values())
def test_many_files_under_both_patterns(tmp_path, name, monkeypatch):
    monkeypatch.setattr("twotowers.logs.formats.vectors.ROWS", 2)
    for part in range(2):
        written(tmp_path / name.format(part), PAGE)
    written(tmp_path / "annotations.parquet", {"features": [[A]], "labels": [[1]]})
    pattern = tmp_path / "part-*split-*.parquet"
    once = [ids(A, B), ids(B), ids(A, C, B)]
    assert numbers(read(pattern).batches) == once * 2
    documents, features = map(np.concatenate, zip(*documents_of(pattern), strict=True))
    assert documents.tolist() == ids(A, B, C)
    np.testing.assert_array_equal(features, np.float32([A, B, C]))
    with pytest.raises(InputError, match=r"no file fits .*a pattern of files"):
        read(tmp_path / "part-*.feather")


def test_numbers_are_of_the_vector_alone():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20_000, 4)).astype(np.float32)
    found = numbers_of(vectors)
    assert len(set(found.tolist())) == len(vectors)
    assert (found >= 0).all()
    # All 62 lower bits are fair coins: 5 standard errors.
    bits = (found[:, None] >> np.arange(62)) & 1
    assert np.abs(bits.mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(vectors))
    np.testing.assert_array_equal(numbers_of(vectors[::-1].astype(float)), found[::-1])
    assert ids([0.0, 1.0]) == ids([-0.0, 1.0])


def test_annotations(tmp_path):
    columns = {"features": [[A, B, C], [B]], "labels": [[0, 4, 1], [2]]}
    found = read_annotations(written(tmp_path / "annotations.parquet", columns))
    assert found.query.tolist() == [0, 0, 0, 1]
    assert found.document.tolist() == [0, 1, 2, 0]
    assert found.label.tolist() == [0, 4, 1, 2]
    np.testing.assert_array_equal(found.features, np.float32([A, B, C, B]))


def changed(**columns):
    return {**PAGE, **columns}


def shown(*pages):
    return changed(query_doc_features=list(pages))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"clicks": [[0]]}, "columns are clicks; none is query_doc_features or features .*clicks"),
        (shown([1.0], [2.0], [3.0]), r"has type double \(expected lists of num"),
        (shown([["a"]], [["b"]], [["c"]]), r"has type string \(expected finite num"),
        (
            shown([A, B], [B], [A, [1.0], B]),
            r"row 3: a vector of 1 numbers \(expected 3 numbers, as before",
        ),
        (
            shown([A, B], [None], [A, C, B]),
            r"row 2: a vector is missing \(expected a vector per document",
        ),
        (shown([A, B], None, [A, C, B]), r"row 2: a value is missing"),
        (shown([A, B], [B], [A, C, NAN]), r"row 3: nan was found \(expected finite numbers"),
        (shown([A, B], [MISSING], [A, C, B]), r"row 2: no value was found \(expected finite numb"),
        (changed(clicks=[0, 1, 0]), r"clicks: has type int64 \(expected a list per page"),
    ],
)
def test_what_is_no_log(tmp_path, columns, message):
    path = written(tmp_path / "log.parquet", columns)
    with pytest.raises(InputError, match=message) as error:
        list(read(path).batches)
    assert str(path) in str(error.value)


def labelled(*labels):
    return {"features": [[A], [A, B]], "labels": list(labels)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"features": [[A]], "label": [[1]]}, "columns are features, label"),
        (labelled([1], [1]), r"row 2: 1 labels and 2 documents \(expected a label per document"),
        ({"features": [[A], []], "labels": [[1], []]}, r"labels: row 2: 0 labels and 0 documents"),
        (labelled([1], [1, -1]), r"labels: row 2: -1 was found \(expected a number from 0 on"),
        (labelled([1], [1, None]), "labels: row 2: no value was"),
        ({"features": [[A]], "labels": [["good"]]}, "labels: has type"),
    ],
)
def test_what_are_no_annotations(tmp_path, columns, message):
    with pytest.raises(InputError, match=message):
        read_annotations(written(tmp_path / "annotations.parquet", columns))


def test_documents_are_read_as_they_were_written(tmp_path):
    rng = np.random.default_rng(0)
    document, features = rng.permutation(50), rng.normal(size=(50, 3)).astype(np.float32)
    batches = [(document[:20], features[:20]), (document[20:], features[20:])]
    assert write_documents(tmp_path / "documents.parquet", batches) == 50
    found = read_documents(tmp_path / "documents.parquet")
    np.testing.assert_array_equal(found.features[found.rows(document)], features)


def test_the_files_of_the_real_set_become_three_parts(tmp_path):
    for part in range(2):
        written(tmp_path / f"part-0_split-{part}.parquet", PAGE)
    written(tmp_path / "annotations.parquet", {"features": [[A, B]], "labels": [[0, 3]]})
    known = source("baidu_ultr_uva")
    found = manifest(locate(known, tmp_path))
    lines = "".join(
        f"{sha256(tmp_path / name)} {name}\n"
        for name in ("part-0_split-0.parquet", "part-0_split-1.parquet")
    )
    (tmp_path / "lines").write_text(lines, encoding="utf-8")
    assert found[LOG]["sha256"] == sha256(tmp_path / "lines")
    assert found[ANNOTATIONS]["sha256"] == sha256(tmp_path / "annotations.parquet")
    (tmp_path / "manifest.json").write_text(json.dumps(found), encoding="utf-8")
    layout = {"format": known.format, "label_max": None, "width": None, "reading": {}}
    out = {part: tmp_path / "raw" / f"{part}.parquet" for part in (PAGES, DOCUMENTS, ANNOTATIONS)}
    for part, path in out.items():
        parse([tmp_path / "manifest.json"], [path], split=part, **layout)
    pages = numbers(read_sessions(out[PAGES]))
    assert pages == [ids(A, B), ids(B), ids(A, C, B)] * 2
    assert seen_in(out[PAGES])["pages"] == 6
    described = read_documents(out[DOCUMENTS])
    np.testing.assert_array_equal(
        described.features[described.rows(np.array(pages[2]))], np.float32([A, C, B])
    )
    assert read_rankings(out[ANNOTATIONS]).label.tolist() == [0, 3]
    (tmp_path / "annotations.parquet").unlink()
    with pytest.raises(InputError, match=r"annotations split of Baidu-ULTR-UVA.* is missing"):
        locate(known, tmp_path)

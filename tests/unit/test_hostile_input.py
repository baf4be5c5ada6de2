"""Odd and broken files that users may supply: each is read, or refused by name."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twotowers.errors import LONGEST, InputError
from twotowers.files.yamls import read_yaml
from twotowers.logs.click_log import read_log
from twotowers.logs.tiangong import read_tiangong

XML = '<?xml version="1.0" encoding="{}"?><r/>'
REFUSED = {
    "YAML with a number of 10,000 digits": (read_yaml, f"a: {'9' * 10_000}", ":1: .*int"),
    "YAML with a date that is none": (read_yaml, "b: 1\na: 2001-13-41", ":2: .*timestamp"),
    "YAML whose value is not of its tag": (read_yaml, "a: !!bool maybe", ":1: .*bool"),
    "YAML with a key that is no text": (read_yaml, "a: {1: 2}", "the key 1 is not text"),
    "YAML that is not UTF-8": (read_yaml, b"a: \xff\xfe\xfd", "not YAML"),
    "YAML with control characters": (read_yaml, b"a: \x00\x07", "not YAML"),
    "YAML with an open bracket": (read_yaml, "a: b\nc: [d\ne: f\n", ":3: not YAML"),
    "YAML with a key twice": (read_yaml, "a:\n  b: 1\n  b: 3\n", ":3: .*'b' occurs twice"),
    "YAML that is empty": (read_yaml, "", r"a NoneType \(expected a mapping"),
    "YAML that is a list": (read_yaml, "- a\n", r"a list \(expected a mapping"),
    "YAML that calls": (read_yaml, "a: !!python/object/apply:os.getpid []", ":1: not YAML: could"),
    "YAML that names code": (read_yaml, "a: !!python/name:os.system", ":1: not YAML: could not"),
    "XML in an encoding of many bytes": (read_tiangong, XML.format("big5"), "encoding: "),
    "XML in an encoding that is none": (read_tiangong, XML.format("utn-8"), "encoding: "),
    "XML in an encoding of text to text": (read_tiangong, XML.format("rot13"), "encoding: "),
    "XML 100,000 elements deep": (read_tiangong, "<a>" * 100_000, "not well-formed"),
    "XML with entities": (read_tiangong, '<!DOCTYPE r [<!ENTITY a "1">]><r/>', "a document type"),
    "XML of another file": (read_tiangong, '<!DOCTYPE r SYSTEM "a"><r/>', "a document type"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_short_message_names_the_file(tmp_path, what):
    read, content, match = REFUSED[what]
    path = tmp_path / "input"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=match) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 4 * LONGEST


@pytest.mark.parametrize("note", [b"\xff", b"", b"[1]", b'{"index_columns": ["x"]}'])
def test_damaged_notes_for_pandas_are_not_read(tmp_path, note):
    columns = {"query": [1, 1, 2], "document": [5, 6, 5], "position": [1, 2, 3]}
    table = pa.table(columns | {"clicks": [1, 0, 1]}).replace_schema_metadata({"pandas": note})
    pq.write_table(table, tmp_path / "log.parquet")
    counts = read_log(tmp_path / "log.parquet").count(["position"])
    assert counts.values("position").to_pylist() == [1, 2, 3]

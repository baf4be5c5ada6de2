"""Odd and broken files that users may supply: each is read, or refused by name."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twotowers.errors import LONGEST, InputError
from twotowers.files.yamls import read_yaml
from twotowers.logs.click_log import read_log
from twotowers.logs.tiangong import read_tiangong


def case(what, *values):
    return pytest.param(*values, id=what)


def refused(read, path, content=None, *, match):
    """Assert that a file is refused with a short message that names it."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=match) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 4 * LONGEST


# YAML


@pytest.mark.parametrize(
    ("text", "message"),
    [
        case("YAML with a number of 10,000 digits", f"a: {'9' * 10_000}", ":1: .*int"),
        case("YAML with a date that is none", "b: 1\na: 2001-13-41", ":2: .*timestamp"),
        case("YAML whose value is not of its tag", "a: !!bool maybe", ":1: .*bool"),
        case("YAML with a key that is no text", "a: {1: 2}", "the key 1 is not text"),
        case("YAML that is not UTF-8", b"a: \xff\xfe\xfd", "not YAML"),
        case("YAML with control characters", b"a: \x00\x07", "not YAML"),
    ],
)
def test_hostile_yaml(tmp_path, text, message):
    refused(read_yaml, tmp_path / "config.yaml", text, match=message)


# Tables


LOG = pa.table(
    {"query": [1, 1, 2], "document": [5, 6, 5], "position": [1, 2, 3], "clicks": [1, 0, 1]}
)


def positions(path):
    return read_log(path).count(["position"]).values("position").to_pylist()


def test_parquet_cut_short(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(LOG, path)
    whole = path.read_bytes()
    for length in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        refused(positions, path, whole[:length], match="the file is damaged")


@pytest.mark.parametrize("note", [b"\xff", b"", b"[1]", b'{"index_columns": ["x"]}'])
def test_damaged_notes_for_pandas_are_not_read(tmp_path, note):
    path = tmp_path / "log.parquet"
    pq.write_table(LOG.replace_schema_metadata({"pandas": note}), path)
    assert positions(path) == [1, 2, 3]


@pytest.mark.parametrize("row", [b'"1,2,3,0\n', b"\xff,2,3,0\n"])
def test_broken_csv(tmp_path, row):
    text = b"query,document,position,clicks\n1,1,1,1\n" + row
    refused(positions, tmp_path / "log.csv", text, match="cannot be read")


# Click logs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        case("XML in an encoding of many bytes", 'encoding="big5"', "encoding: "),
        case("XML in an encoding that is none", 'encoding="utn-8"', "encoding: "),
        case("XML in an encoding of text to text", 'encoding="rot13"', "encoding: "),
        case("XML 100,000 elements deep", "<a>" * 100_000, "not well-formed"),
    ],
)
def test_hostile_xml(tmp_path, text, message):
    declaration = f'<?xml version="1.0" {text}?><r/>' if text.startswith("enc") else text
    refused(read_tiangong, tmp_path / "log.xml", declaration, match=message)

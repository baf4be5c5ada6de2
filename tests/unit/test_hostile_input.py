"""Files made to do harm: each is refused by name, quickly, in little memory, with no trace."""

import gzip
import itertools
import json
import pickle
import subprocess
import sys
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz import archives, tables
from tests.fuzz.targets import CORPUS
from twotowers import ROOT
from twotowers.datasets import download, letor
from twotowers.datasets.download import fetch, manifest, obtain
from twotowers.datasets.letor import read_letor
from twotowers.datasets.sources import source_from_config
from twotowers.errors import LONGEST, InputError
from twotowers.files.rankings import read_rankings
from twotowers.files.yamls import read_yaml
from twotowers.identify import read_log
from twotowers.logs.cells import read_logs
from twotowers.logs.policies import read_scores
from twotowers.logs.tiangong import read_tiangong
from twotowers.logs.yandex import read_yandex
from twotowers.results.longform import read_results


def case(what, outcome, *values):
    """A row of the table of reliability."""
    return pytest.param(*values, id=what.replace(" ", "-"), marks=pytest.mark.fault(what, outcome))


def refused(read, path, content=None, *, match):
    """Assert that a file is refused with a message that names it, and is no longer than needed."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=match) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 4 * LONGEST


def peak_of(call):
    """Peak of the memory that Python and NumPy take meanwhile, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Archives


def member(name, kind=tarfile.REGTYPE, content=b"", link="", size=None):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(content) if size is None else size
    return info, content


def packed(*members) -> bytes:
    """A gzipped tar of the three files and these members, whatever they claim of themselves."""
    plain = [member(name, content=b"1 qid:1 1:1\n") for name in archives.FILES]
    blocks = []
    for info, content in [*plain, *members]:
        padding = -len(content) % tarfile.BLOCKSIZE
        blocks += [info.tobuf(tarfile.GNU_FORMAT), content, bytes(padding)]
    return gzip.compress(b"".join(blocks) + bytes(2 * tarfile.BLOCKSIZE), mtime=0)


def unpack(archive: bytes, folder: Path):
    folder.mkdir(parents=True)
    (folder / archives.NAME).write_bytes(archive)
    return fetch(archives.source_of(archive), folder)


NOTHING = "refused; nothing is unpacked"
LEFT = "refused before it is unpacked"


@pytest.mark.parametrize(
    "hostile",
    [
        case("hard link in an archive", NOTHING, member("a", tarfile.LNKTYPE, link="/etc/passwd")),
        case("device in an archive", NOTHING, member("a", tarfile.CHRTYPE)),
        case("named pipe in an archive", NOTHING, member("a", tarfile.FIFOTYPE)),
        case("archive with a file below a file", NOTHING, member(f"{archives.FILES[0]}/a")),
        case("archive with a file twice", NOTHING, member(archives.FILES[0])),
        case("archive that overwrites itself", NOTHING, member(archives.NAME)),
        case("archive with a line end in a name", NOTHING, member("a\nb")),
        case("archive with a name of 300 bytes", NOTHING, member("a" * 300)),
        case("archive with folders 60 deep", NOTHING, member("a/" * 60 + "a")),
        case("archive with a file of negative size", NOTHING, member("a", size=-1024)),
    ],
)
def test_hostile_members(tmp_path, hostile):
    if len(hostile[0].name) > 100:  # such a name is a member of its own
        info, content = hostile
        name = info.name.encode() + b"\0"
        info.name = info.name[:100]
        hostile = [member("././@LongLink", tarfile.GNUTYPE_LONGNAME, name), (info, content)]
    else:
        hostile = [hostile]
    with pytest.raises(InputError, match="not safe to unpack; nothing was unpacked") as caught:
        unpack(packed(*hostile), tmp_path / "folder")
    assert str(tmp_path / "folder" / archives.NAME) in str(caught.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", archives.NAME]


@pytest.mark.fault("archive that unpacks to a thousand times its size", LEFT)
def test_a_bomb_is_left_packed(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LONGEST_READ", 1 << 16)
    bomb = packed(member("zeros", content=bytes(1 << 24)))
    assert len(bomb) < (1 << 24) / 500
    assert peak_of(lambda: refusal_of(bomb, tmp_path, "unpacks to more than")) < 1 << 22


@pytest.mark.fault("archive that claims a file of an exabyte", LEFT)
def test_a_size_that_cannot_be(tmp_path):
    refusal_of(packed(member("much", size=1 << 60)), tmp_path, "unpacks to more than")


@pytest.mark.fault("archive of very many members", LEFT)
def test_many_members(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MOST_MEMBERS", 50)
    folders = [member(f"{number}/", tarfile.DIRTYPE) for number in range(50)]
    refusal_of(packed(*folders), tmp_path, "or 50 members")


@pytest.mark.fault("archive whose header asks for gigabytes", "refused before memory is taken")
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
@pytest.mark.parametrize("size", [1 << 33, -1024])
def test_a_header_that_is_too_long(tmp_path, kind, size):
    archive = packed(member("header", kind, size=size))
    assert peak_of(lambda: refusal_of(archive, tmp_path, "a header of")) < 1 << 22


@pytest.mark.fault("archive cut or damaged, though its checksum agrees", "refused as damaged")
def test_a_damaged_archive(tmp_path):
    archive = packed(member("a", content=np.random.default_rng(1).bytes(5000)))
    no_text = packed(member("header", tarfile.XHDTYPE, b"17 hdrcharset=\xff\xff\n"))
    scratched = archive[:60] + b"????" + archive[64:]
    for number, broken in enumerate((archive[:-2000], scratched, no_text)):
        refusal_of(broken, tmp_path / str(number), "cannot be unpacked")


def refusal_of(archive, folder, message):
    with pytest.raises(InputError, match=message):
        unpack(archive, folder / "folder")
    assert {path.name for path in folder.rglob("*")} <= {"folder", archives.NAME, "sample"}
    assert not [path for path in folder.rglob("*.txt") if path.read_bytes() != b"1 qid:1 1:1\n"]


# YAML


def levels(inner: str) -> str:
    """Forty mappings, each made of the one before it, several times."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n + 1}: &a{n + 1} " + inner.replace("*", f"*a{n}") for n in range(40)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        case("YAML whose aliases multiply", "refused", levels("[*, *, *]"), "multiply"),
        case("YAML whose merged keys multiply", "refused", levels("{<<: [*, *]}"), "multiply"),
        case("YAML that contains itself", "refused", "a: &a [*a]", "in circles"),
        case("YAML nested a thousand deep", "refused", "a: " + "[" * 1000, "too deeply"),
        case("YAML with a number of 10,000 digits", "refused", f"a: {'9' * 10_000}", ":1: .*int"),
        case("YAML with a date that is none", "refused", "b: 1\na: 2001-13-41", ":2: .*timestamp"),
        case("YAML whose value is not of its tag", "refused", "a: !!bool maybe", ":1: .*bool"),
        case("YAML with a key that is no text", "refused", "a: {1: 2}", "the key 1 is not text"),
        case("YAML that is not UTF-8", "refused", b"a: \xff\xfe\xfd", "not YAML"),
        case("YAML with control characters", "refused", b"a: \x00\x07", "not YAML"),
    ],
)
def test_hostile_yaml(tmp_path, text, message):
    refused(read_yaml, tmp_path / "config.yaml", text, match=message)


# Parquet


class Trap:
    """What pickle would run on loading."""

    def __reduce__(self):
        return Path.touch, (Path("opened"),)


READERS = {
    "rankings": (tables.RANKINGS, read_rankings),
    "policy": (tables.POLICY, lambda path: read_scores(path, "train")),
    "counts": (
        tables.COUNTS,
        lambda path: read_logs(path, [tables.LANE], split="train", pairs=tables.PAIRS, length=2),
    ),
    "results": (tables.RESULTS, lambda path: read_results([path])),
    "log": (tables.LOG, lambda path: read_log(path, ["query", "position"])),
}


def retyped(table, kind):
    at = table.column_names.index("position" if "position" in table.column_names else "query")
    return table.set_column(at, table.column_names[at], pa.nulls(len(table), kind))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        case(
            "parquet with a column of another type",
            "refused with the column",
            lambda table: retyped(table, pa.struct({"a": pa.int64()})),
            "has type struct",
        ),
        case(
            "parquet with a column missing",
            "refused with the column",
            lambda table: table.drop(["query" if "query" in table.column_names else "value"]),
            "the column is missing|no such column",
        ),
        case(
            "parquet with a column twice",
            "refused with the column",
            lambda table: table.append_column(table.field(1), table.column(1)).append_column(
                table.field(0), table.column(0)
            ),
            "2 columns of that name",
        ),
    ],
)
def test_parquet_of_other_columns(tmp_path, name, change, message):
    table, read = READERS[name]
    path = tmp_path / "table.parquet"
    pq.write_table(table, path)
    read(path)
    pq.write_table(change(table), path)
    refused(read, path, match=message)


@pytest.mark.fault("parquet with missing values", "refused with the column")
@pytest.mark.parametrize("name", ["rankings", "policy", "counts"])
@pytest.mark.parametrize("column", ["query", "document"])
def test_parquet_with_missing_values(tmp_path, name, column):
    table, read = READERS[name]
    at = table.column_names.index(column)
    holes = pa.array([None, *table.column(at).to_pylist()[1:]], table.field(at).type)
    path = tmp_path / "table.parquet"
    pq.write_table(table.set_column(at, column, holes), path)
    refused(read, path, match=f"{column}: missing in 1 rows")


@pytest.mark.fault("parquet with missing features", "refused with the column")
def test_missing_features(tmp_path):
    holes = pa.array([[1, None], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))
    path = tmp_path / "table.parquet"
    pq.write_table(tables.RANKINGS.set_column(3, "features", holes), path)
    refused(read_rankings, path, match="features: 1 are missing")


@pytest.mark.fault("parquet cut short", "refused as damaged; delete it and rerun")
@pytest.mark.parametrize("name", READERS)
def test_parquet_cut_short(tmp_path, name):
    table, read = READERS[name]
    whole = tables.written(table, {})
    for length in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        message = "the file is damaged .*delete it and rerun"
        refused(read, tmp_path / "table.parquet", whole[:length], match=message)


@pytest.mark.fault("parquet whose statistics make Arrow end the process", "refused as damaged")
def test_damaged_statistics(tmp_path):
    # Found by the fuzzer: with pyarrow 26.0.1 a look at them is the end of Python.
    text = (CORPUS / "counts" / "statistics.parquet").read_bytes()
    refused(READERS["counts"][1], tmp_path / "table.parquet", text, match="the file is damaged")


@pytest.mark.fault("parquet that carries a pickle as its extension type", "nothing is unpickled")
@pytest.mark.parametrize("name", READERS)
def test_no_pickle_is_taken_from_a_table(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(Trap())
    table, read = READERS[name]
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickled,
    }
    field = table.field(0).with_metadata(metadata)
    pq.write_table(table.set_column(0, field, table.column(0)), "table.parquet")
    assert (
        pickled in Path("table.parquet").read_bytes()
        or b"ARROW:schema" in Path("table.parquet").read_bytes()
    )
    read(Path("table.parquet"))
    assert not Path("opened").exists()
    pickle.loads(pickled)
    assert Path("opened").exists(), "the trap works"


@pytest.mark.fault("parquet with damaged notes for pandas", "refused, or read without them")
@pytest.mark.parametrize("note", [b"\xff", b"", b"[1]", b'{"index_columns": ["x"]}'])
def test_notes_for_pandas(tmp_path, note):
    plain, noted = tmp_path / "plain.parquet", tmp_path / "noted.parquet"
    for name in ("results", "log"):
        table, read = READERS[name]
        pq.write_table(table, plain)
        pq.write_table(table.replace_schema_metadata({"pandas": note}), noted)
        if name == "log":
            assert read(noted).equals(read(plain))
        else:
            refused(read, noted, match="notes for pandas are damaged")


@pytest.mark.fault("folder named key=value", "is not taken for a column")
@pytest.mark.parametrize("name", READERS)
def test_a_folder_is_no_column(tmp_path, name):
    table, read = READERS[name]
    path = tmp_path / "query=9" / "seed=5" / "table.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)
    read(path)


@pytest.mark.fault("csv that is not UTF-8, or has an open quote", "refused by name")
@pytest.mark.parametrize("row", [b'"1,2\n', b"\xff,2\n"])
def test_broken_csv(tmp_path, row):
    path = tmp_path / "log.csv"
    text = b"query,position\n1,1\n" + row
    refused(lambda path: read_log(path, ["query"]), path, text, match="cannot be read")


# LETOR


def read_small(path):
    return read_letor(path, width=3, label_max=4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        case("LETOR with a value of a megabyte", "refused", b"1 qid:1 1:" + b"x" * 2**20, ":1: "),
        case("LETOR with a label of a megabyte", "refused", b"1" * 2**20 + b" qid:1", ":1: label"),
        case("LETOR with feature index 10^9", "refused", b"1 qid:1 1000000000:1", "1000000000"),
        case(
            "LETOR with an index beyond int64", "refused", b"1 qid:1 " + b"9" * 30 + b":1", ":1: "
        ),
        case("LETOR with a byte order mark", "refused", b"\xef\xbb\xbf1 qid:1 1:2", ":1: label"),
        case("LETOR in UTF-16", "refused", "1 qid:1 1:2\n".encode("utf-16"), ":1: label"),
        case("LETOR with NUL bytes", "refused", b"1 qid:1 1:2\n1 qid:1 1:\x002\n", ":2: feature"),
        case("LETOR with old Mac line ends", "refused", b"1 qid:1 1:2\r1 qid:2 1:2\r", ":1: "),
    ],
)
def test_hostile_letor(tmp_path, text, message):
    refused(read_small, tmp_path / "letor.txt", text, match=message)


@pytest.mark.fault("LETOR with a line of four megabytes that is right", "read")
def test_a_long_line_is_read(tmp_path):
    path = tmp_path / "letor.txt"
    path.write_bytes(b"1 qid:1 1:2" + b" " * (1 << 22) + b"3:4 # " + b"x" * (1 << 20))
    assert read_small(path).features.tolist() == [[2, 0, 4]]


@pytest.mark.fault("LETOR whose table no memory holds", "refused with its size")
def test_a_table_beyond_memory(tmp_path, monkeypatch):
    def no_room(shape, *rest):
        if isinstance(shape, tuple):
            raise MemoryError(f"no room for {shape}")
        return zeros(shape, *rest)

    zeros = np.zeros
    monkeypatch.setattr(letor.np, "zeros", no_room)
    text = b"1 qid:1 100000:1\n" * 9
    message = r"does not fit into memory: no room for \(10, 100000\)"
    refused(read_letor, tmp_path / "letor.txt", text, match=message)


# Click logs


def page(rest, rank=1, kind="a#b"):
    result = f'<result rank="{rank}"><docid>d1</docid><vtype>{kind}</vtype></result>'
    return f"<interaction><query_id>q1</query_id>{result}{rest}</interaction>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        case("XML in an encoding of many bytes", "refused", 'encoding="big5"', "encoding: "),
        case("XML in an encoding that is none", "refused", 'encoding="utn-8"', "encoding: "),
        case("XML in an encoding of text to text", "refused", 'encoding="rot13"', "encoding: "),
        case("result page within a result page", "refused", page(page("")), "within another"),
        case("XML 100,000 elements deep", "refused", "<a>" * 100_000, "not well-formed"),
    ],
)
def test_hostile_xml(tmp_path, text, message):
    declaration = f'<?xml version="1.0" {text}?><r/>' if text.startswith("enc") else text
    refused(read_tiangong, tmp_path / "log.xml", declaration, match=message)


@pytest.mark.fault("one vertical type of 300 kB among many", "read; memory as the file's size")
def test_one_long_name_does_not_lengthen_the_others(tmp_path):
    pages = [page("", kind="x" * 300_000 + "#y"), *(page("", kind=f"{n}#y") for n in range(300))]
    path = tmp_path / "log.xml"
    path.write_text(f"<r>{''.join(pages)}</r>")
    assert peak_of(lambda: read_tiangong(path)) < 20 * path.stat().st_size


@pytest.mark.fault("result page of 20,000 documents, all clicked", "read within seconds")
def test_a_long_page_takes_no_longer_than_its_length(tmp_path):
    path = tmp_path / "log"
    documents = [str(number) for number in range(20_000)]
    path.write_text(f"1_0\t{','.join(documents)} : {' , '.join(documents)}")
    assert steps_of(lambda: read_yandex(path)) < 50 * len(documents)
    path.write_text(f"1_0\t{','.join([*documents, documents[-1]])} :")
    assert steps_of(lambda: refused(read_yandex, path, match="listed twice")) < 50 * len(documents)


def steps_of(call) -> int:
    """How many times documents are compared or hashed, by counting lines run in the reader."""
    steps = itertools.count()

    def trace(frame, event, argument):
        return local if frame.f_code.co_filename.endswith("yandex.py") else None

    def local(frame, event, argument):
        next(steps)
        return local

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return next(steps)


# Names


NAMES = {
    "a space": "my data",
    "quotes": 'it\'s "mine"',
    "a line end": "two\nlines",
    "shell words": "$(touch opened); rm -rf *",
    "a percent sign and braces": "100% {sure}",
    "a dash first": "-rf",
    "letters of any script": "данные 数据",
}


@pytest.mark.parametrize("name", [case(f"folder with {w}", "read", n) for w, n in NAMES.items()])
def test_folders_of_any_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / name
    splits = {split: f"{name}/{split}.txt" for split in ("train", "validation", "test")}
    for path in splits.values():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("1 qid:1 1:1\n")
    declared = {"name": "mine", "width": 1, "label_max": 4, "splits": splits}
    found = manifest(obtain(source_from_config(declared), folder))
    for entry in json.loads(json.dumps(found)).values():
        assert read_letor(entry["path"], width=1).label.tolist() == [1]
    refused(read_rankings, damaged(folder), match="features: the column is missing")
    assert not (tmp_path / "opened").exists()


def damaged(folder):
    path = folder / "table.parquet"
    pq.write_table(tables.RANKINGS.drop(["features"]), path)
    return path


@pytest.mark.fault("project folder with spaces and quotes", "imports and reads its configuration")
def test_a_project_in_a_folder_of_any_name(tmp_path):
    folder = tmp_path / 'my "own" project\'s'
    folder.mkdir()
    for name in ("twotowers", "config", "config.yaml", "papers"):
        (folder / name).symlink_to(ROOT / name)
    script = (
        "from twotowers.running.experiments import check_config, load_experiment;"
        "from twotowers.files.yamls import read_yaml;"
        "config = check_config(read_yaml('config.yaml'));"
        "print(*(load_experiment(paper, config).key for paper in config['papers']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == read_yaml(ROOT / "config.yaml")["papers"]


def test_the_archives_of_these_tests_are_archives(tmp_path):
    packed_with_another = packed(member("a/b", content=b"x"))
    folder = unpack(packed_with_another, tmp_path / "folder")
    assert (folder / "a" / "b").read_bytes() == b"x"
    assert all((folder / name).is_file() for name in archives.FILES)

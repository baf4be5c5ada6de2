"""Tables of any size in parquet, csv or feather, read some thousands of rows at a time."""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json

from twotowers.errors import InputError
from twotowers.files.artefacts import Frame, Source
from twotowers.files.columns import Rows, check_names
from twotowers.files.tables import opened

ROWS = 100_000
"""The most rows of a batch."""
FIRST = 100_000
"""Bytes of a text file that tell how it is written."""
BLOCK = 4 << 20
"""Bytes of a csv file to parse at a time."""
CSV = (".csv", ".tsv")
"""Endings of tables that are text."""
SEPARATORS = (",", ";", "\t", "|")
"""Of columns; the one that the first line has most of."""
JSON = (".ndjson", ".jsonl", ".json")
"""Endings of files of JSON: an object per line."""
PACKED = {
    ".gz": ("gzip", b"\x1f\x8b"),
    ".bz2": ("bz2", b"BZh"),
    ".zst": ("zstd", b"\x28\xb5\x2f\xfd"),
}
"""Endings that may follow those of text, with the codec, and how such a file begins."""
ENCODINGS: dict[str, str] = {}
"""Of text files, by their paths."""
WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
"""Whole numbers that fit into int64 and that int64 prints in the same way."""


def read_batches(
    path: Source, columns: Sequence[str], *, rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a table of any size, at most `rows` rows at a time.

    A .parquet, .csv, .tsv, .ndjson (these perhaps with .gz, .bz2 or .zst), .feather or .arrow file;
    or a frame. Text may have any of `SEPARATORS`. Columns of a csv file are text, as in the file.
    Empty text is a missing value.
    """
    columns = list(dict.fromkeys(columns))
    with closing(_table(path, columns, rows)) as table:
        check_names(columns, next(table), path)
        for batch in table:
            for start in range(0, len(batch), rows):
                yield _without_empty(batch.slice(start, rows))


def placed_batches(
    path: Source, columns: Sequence[str], *, rows: int = ROWS
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    """The batches of `read_batches`, and their places."""
    before = 0
    for batch in read_batches(path, columns, rows=rows):
        yield Rows(path, before), batch
        before += len(batch)


def _without_empty(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Empty text as a missing value, as in a csv file; whole decimals as int64, bytes as text."""
    for place, each in enumerate(batch.schema):
        plain = pa.int64() if pa.types.is_decimal(each.type) else pa.string()
        if pa.types.is_decimal(each.type) or pa.types.is_binary(each.type):
            with suppress(pa.ArrowInvalid):  # Its reader says what is wrong.
                batch = batch.set_column(place, each.name, batch[each.name].cast(plain))
        if pa.types.is_string(each.type) or pa.types.is_large_string(each.type):
            empty = pc.equal(batch[each.name], "")
            if pc.any(empty).as_py():
                values = pc.if_else(empty, pa.scalar(None, each.type), batch[each.name])
                batch = batch.set_column(place, each.name, values)
    return batch


def column_names(path: Source) -> list[str]:
    """Names of the columns of a table; see `read_batches`."""
    with closing(_table(path, [], ROWS)) as table:
        return list(next(table))


def set_encoding(path: Path | Frame, encoding: str | None) -> None:
    """Read a text file in an encoding from now on; None is UTF-8."""
    try:
        ENCODINGS[str(path)] = codecs.lookup(encoding or "utf8").name
    except LookupError:
        raise InputError(f"{encoding!r}", field="encoding", expected="such as latin-1") from None


def is_text_file(path: Source) -> bool:
    """Whether the values of a table are text, according to its ending."""
    return not isinstance(path, Frame) and _ending(Path(path)) in CSV


def is_table(path: Source) -> bool:
    """Whether `read_batches` reads such a file, according to its ending. Of JSON that is open."""
    return isinstance(path, Frame) or _ending(Path(path)) in {*READERS} - {*JSON}


def is_json(path: Source) -> bool:
    """Whether a file is JSON, according to its ending."""
    return not isinstance(path, Frame) and _ending(Path(path)) in JSON


@contextmanager
def opened_text(path: str | Path, *, encoding: str) -> Iterator[TextIO]:
    """A text file for reading, unpacked if it ends in `.gz`. Lines end with a line feed only."""
    how = {"encoding": encoding, "errors": "backslashreplace", "newline": "\n"}
    packed = Path(path).suffix == ".gz"
    try:
        with gzip.open(path, "rt", **how) if packed else open(path, **how) as file:
            yield file
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=path, expected="a file of text") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {error}", path=path, expected="gzip") from error


def _ending(path: Path) -> str:
    """What tells the format. Only text may be packed."""
    inner, outer = path.with_suffix("").suffix.lower(), path.suffix.lower()
    return inner if outer in PACKED and inner in (*CSV, *JSON) else outer


def _table(path: Source, columns: list[str], rows: int) -> Iterator:
    """The names of a table's columns, then batches of some of them."""
    if isinstance(path, Frame):
        yield path.table.column_names
        # Frames that were put together of many may have chunks of few rows.
        yield from path.table.select(columns).combine_chunks().to_batches()
        return
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="a table")
    if (ending := _ending(path)) not in READERS:
        raise InputError(
            f"the ending {path.suffix!r} is unknown",
            path=path,
            expected=".parquet, .csv, .tsv, .ndjson (perhaps with .gz), .feather or .arrow",
        )
    read, expected = READERS[ending]
    try:
        yield from read(path, columns, rows)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, AttributeError) as error:
        problem = f"cannot be read: {str(error)[:200]}"
        raise InputError(problem, path=path, expected=expected) from error


def _parquet(path: Path, columns: list[str], rows: int) -> Iterator:
    with opened(path) as file:
        yield file.schema_arrow.names
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield batch.select(columns)


def _feather(path: Path, columns: list[str], rows: int) -> Iterator:
    with pa.OSFile(str(path)) as raw:
        names = pa.ipc.open_file(raw).schema.names
        yield names
        # Other columns are not read at all.
        options = pa.ipc.IpcReadOptions(included_fields=sorted(map(names.index, columns)))
        file = pa.ipc.open_file(raw, options=options)
        for number in range(file.num_record_batches):
            yield file.get_batch(number).select(columns)


def _unpacked(path: Path) -> pa.NativeFile:
    """A file of text: it is packed or not by how it begins, whatever its name says."""
    raw = pa.OSFile(str(path))
    start = raw.read(4)
    raw.seek(0)
    codec = next((name for name, begins in PACKED.values() if start.startswith(begins)), None)
    return raw if codec is None else pa.CompressedInputStream(raw, codec)


@lru_cache(maxsize=64)
def _text(path: Path, encoding: str, _: tuple) -> tuple[dict, tuple[str, ...], list]:
    """How a text file is written, as its beginning shows, its columns, and the file.

    A file that is not packed stays open, at its start, for the first who reads its rows.
    """
    file, still_open = _unpacked(path), []
    beginning = file.read(BLOCK)
    if file.seekable():
        file.seek(0)
        still_open.append(file)
    start = beginning[:FIRST]
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    lines = start.decode(encoding, "replace").splitlines() or [""]
    comments = next((n for n, line in enumerate(lines) if not line.startswith("#")), 0)
    head, quoted = re.sub('"[^"]*"', "", lines[comments]), b'"' in start
    written = {
        "read_options": pa.csv.ReadOptions(
            use_threads=False, block_size=BLOCK, encoding=encoding, skip_rows=comments
        ),
        "parse_options": pa.csv.ParseOptions(
            delimiter=max(SEPARATORS, key=head.count), newlines_in_values=quoted
        ),
    }
    if len(beginning) == BLOCK:
        beginning = beginning[: beginning.rfind(b"\n") + 1]
    with pa.csv.open_csv(pa.BufferReader(beginning), **written) as table:
        return written, tuple(table.schema.names), still_open


def _csv(path: Path, columns: list[str], rows: int) -> Iterator:
    about = path.stat()
    version = about.st_mtime_ns, about.st_size, about.st_ino
    written, names, still_open = _text(path, ENCODINGS.get(str(path), "utf8"), version)
    yield names
    file = still_open.pop() if still_open else _unpacked(path)
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=columns,
        # An empty value is a missing one. NA and null are text.
        strings_can_be_null=True,
        null_values=[""],
    )
    with pa.csv.open_csv(file, **written, convert_options=convert) as table:
        yield from table


def _json(path: Path, columns: list[str], rows: int) -> Iterator:
    if _unpacked(path).read(1) == b"[":  # One list of objects is held whole.
        table = pa.Table.from_pylist(json.load(_unpacked(path)))
        yield table.schema.names
        yield from table.select(columns).to_batches()
        return
    options = pa.json.ReadOptions(use_threads=False, block_size=BLOCK)
    with pa.json.open_json(_unpacked(path), options) as file:
        yield file.schema.names
        for batch in file:
            yield batch.select(columns)


READERS = {
    ".parquet": (_parquet, "a parquet file"),
    **dict.fromkeys((".feather", ".arrow"), (_feather, "Feather, version 2")),
    **dict.fromkeys(CSV, (_csv, "a table in UTF-8; or encoding='latin-1', or another")),
    **dict.fromkeys(JSON, (_json, "a JSON object per line")),
}
"""Ending -> what yields the names of a file's columns, then its batches; and such a file in
words."""

"""Tables of any size in parquet, csv or feather, read some thousands of rows at a time."""

from __future__ import annotations

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
from twotowers.files.columns import Rows, check_types
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
ENCODINGS: dict[Path, str] = {}
"""Of text files that are not in UTF-8."""
WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
"""Whole numbers that fit into int64 and that int64 prints in the same way."""


def read_batches(
    path: Source, columns: Sequence[str], *, rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a table of any size; of parquet and feather, at most `rows` at a time.

    A .parquet, .csv, .tsv, .ndjson (these perhaps with .gz, .bz2 or .zst), .feather or .arrow file;
    or a frame. Text may have any of `SEPARATORS`. Columns of a csv file are text, as in the file.
    Empty text is a missing value.
    """
    columns = list(dict.fromkeys(columns))
    if isinstance(path, Frame):
        check_names(columns, path.table.column_names, path)
        # Frames that were put together of many may have chunks of few rows.
        batches = path.table.select(columns).combine_chunks().to_batches(max_chunksize=rows)
        yield from map(_without_empty, batches)
        return
    with closing(_table(path, columns, rows)) as table:
        check_names(columns, next(table), path)
        yield from map(_without_empty, table)


def placed_batches(
    path: Source, columns: Sequence[str], *, rows: int = ROWS
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    """The batches of `read_batches` that have rows, and their places."""
    before = 0
    for batch in read_batches(path, columns, rows=rows):
        if len(batch):
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
    if isinstance(path, Frame):
        return path.table.column_names
    return list(_names(Path(path), _version(Path(path))))


@lru_cache(maxsize=256)
def _names(path: Path, _: object) -> tuple[str, ...]:
    """The names of a file as it is now, so that it is opened for them once."""
    with closing(_table(path, [], 1)) as table:
        return tuple(next(table))


def _version(path: Path) -> tuple | None:
    about = path.stat() if path.is_file() else None
    return about and (str(path), about.st_mtime_ns, about.st_size, about.st_ino)


def set_encoding(path: Path | Frame, encoding: str | None) -> None:
    """Read a text file in an encoding from now on; None is UTF-8."""
    if isinstance(path, Frame) or encoding == ENCODINGS.get(path):
        return
    try:
        ENCODINGS[path] = codecs.lookup(encoding or "utf8").name
    except LookupError:
        raise InputError(f"{encoding!r}", field="encoding", expected="such as latin-1") from None
    _names.cache_clear()
    _text.cache_clear()


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
    """The names of a file's columns, then its batches of some of them."""
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="a table")
    if (ending := _ending(path)) not in READERS:
        raise InputError(
            f"the ending {path.suffix!r} is unknown",
            path=path,
            expected=".parquet, .csv, .tsv, .ndjson (perhaps with .gz), .feather or .arrow",
        )
    yield from READERS[ending](path, columns, rows)


def _parquet(path: Path, columns: list[str], rows: int) -> Iterator:
    with opened(path) as file:
        yield file.schema_arrow.names
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield batch.select(columns)


@contextmanager
def _feather_file(
    path: Path, fields: list[int] | None = None
) -> Iterator[pa.ipc.RecordBatchFileReader]:
    """The file, or only some of its columns, given their places: others are not read at all."""
    options = pa.ipc.IpcReadOptions(included_fields=fields or [])
    try:
        with pa.OSFile(str(path)) as raw, pa.ipc.open_file(raw, options=options) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"the file is damaged ({str(error)[:200]})", path=path, expected="Feather, version 2"
        ) from error


def _feather(path: Path, columns: list[str], rows: int) -> Iterator:
    with _feather_file(path) as file:
        names = file.schema.names
    yield names
    with _feather_file(path, sorted(map(names.index, columns))) as file:
        for number in range(file.num_record_batches):
            yield from _pieces(file.get_batch(number).select(columns), rows)


def _pieces(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


@lru_cache(maxsize=256)
def _text(path: Path, version: tuple | None) -> tuple[dict, tuple[str, ...]]:
    """How a text file is written, as its beginning shows, and its columns."""
    raw = pa.OSFile(str(path))
    with _reading(path):
        text = _unpacked(raw)
        beginning = text.read(BLOCK)
    _OPEN.clear()
    if text is raw:  # Unpacking closes the file.
        _OPEN[version] = raw
    start = beginning[:FIRST]
    utf16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
    encoding = "utf-16" if utf16 else ENCODINGS.get(path, "utf8")
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
    with _reading(path), pa.csv.open_csv(pa.BufferReader(beginning), **written) as file:
        return written, tuple(file.schema.names)


_OPEN: dict[tuple | None, pa.NativeFile] = {}
"""The text file whose beginning was read last. It stays open for its rows."""


@contextmanager
def _reading(path: Path) -> Iterator:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        problem, expected = f"cannot be read: {str(error)[:200]}", "a table in UTF-8"
        if "UTF8" in problem or isinstance(error, UnicodeError):
            expected += "; or encoding='latin-1', or another"
        raise InputError(problem, path=path, expected=expected) from error


def _unpacked(raw: pa.NativeFile) -> pa.NativeFile:
    """A text file as text: it is packed or not by how it begins, whatever its name says."""
    start = raw.read(4)
    raw.seek(0)
    codec = next((name for name, begins in PACKED.values() if start.startswith(begins)), None)
    return raw if codec is None else pa.CompressedInputStream(raw, codec)


def _csv(path: Path, columns: list[str], rows: int) -> Iterator:
    version = _version(path)
    written, names = _text(path, version)
    yield list(names)
    raw = _OPEN.pop(version, None) or pa.OSFile(str(path))
    raw.seek(0)
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=columns,
        # An empty value is a missing one. NA and null are text.
        strings_can_be_null=True,
        null_values=[""],
    )
    given = {**written, "convert_options": convert}
    with _reading(path), pa.csv.open_csv(_unpacked(raw), **given) as file:
        for batch in file:
            yield from _pieces(batch, rows)


def _json(path: Path, columns: list[str], rows: int) -> Iterator:
    try:
        with opened_text(path, encoding="utf-8") as file:
            listed = json.load(file) if file.read(1) == "[" and not file.seek(0) else None
        if listed is not None:  # One list of objects is held whole.
            table = pa.Table.from_pylist(listed)
            yield table.schema.names
            yield from table.select(columns).to_batches(max_chunksize=rows) if columns else ()
            return
        options = pa.json.ReadOptions(use_threads=False, block_size=BLOCK)
        raw = pa.OSFile(str(path))
        with pa.json.open_json(_unpacked(raw), options) as file:
            yield file.schema.names
            for batch in file if columns else ():
                yield from _pieces(batch.select(columns), rows)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, AttributeError) as error:
        problem = f"cannot be read: {str(error)[:200]}"
        raise InputError(problem, path=path, expected="a JSON object per line") from error


READERS = {
    ".parquet": _parquet,
    ".feather": _feather,
    ".arrow": _feather,
    **dict.fromkeys(CSV, _csv),
    **dict.fromkeys(JSON, _json),
}
"""Ending -> what yields the names of a file's columns, and then its batches."""


def check_names(wanted: Sequence[str], found: Sequence[str], path: Path | Frame) -> None:
    """Raise InputError for a wanted column that a file does not have, or has twice."""
    check_types(pa.schema([(name, pa.null()) for name in found]), dict.fromkeys(wanted), path)

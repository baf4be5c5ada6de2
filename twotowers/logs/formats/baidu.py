"""Reader of the files of Baidu-ULTR-UVA on Hugging Face: a row per shown document, with text.

A log is many files, `part-2_split-0.feather` and so on, with the columns

    query_no                   the session; its rows follow each other, perhaps across batches
    query_md5, url_md5         text; both together are the document
    position                   from 1, with gaps where a placeholder was dropped
    click                      0 or 1
    query, title, abstract     lists of token ids
    query_document_embedding   a list of numbers, often in half precision
    bm25, ... (`LEXICAL`)      twelve lexical features

and one file of annotations, with `label` instead of `url_md5`, `position` and `click`. A reader
takes the columns that it needs, and one batch of the file is in memory at a time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers import LOG
from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, read_batches, whole_numbers
from twotowers.files.rankings import Rankings
from twotowers.files.seen import Seen
from twotowers.logs.sessions import Stream, check_free, conform
from twotowers.logs.strays import Tally
from twotowers.text.lexical import LEXICAL

LAYOUT = "a row per shown document, with tokens and features"

EMBEDDING, LABEL = "query_document_embedding", "label"
FEATURES = (*LEXICAL, EMBEDDING)
TOKENS = ("query", "title", "abstract")
IDS = ("query_md5", "url_md5")
POSITIONS = "positions"
"""The bias feature that keeps positions as they are: the place in a page's list closes the gaps."""
PART = re.compile(r"part-(\d+)")
LONGEST = 10_000
"""The most rows of a session. If there are more, `query_no` is not the session."""
LARGEST_LABEL = 2**24
ROWS = 20_000
"""Rows to decode at a time."""


def read(path: str | Path, *, bias: Sequence[str] = (), repeats: str = "drop") -> Stream:
    """Read a log's pages, without features and texts; see `documents_of` and `texts_of`.

    Args:
        path: a feather or parquet file, or a pattern such as `parts/part-*_split-*.feather`.
        bias: further columns of documents to keep, such as `serp_height`.
        repeats: 'drop' or 'error': further clicks on a document of one page.

    Returns:
        Pages as `twotowers.logs.sessions` describes, with the bias feature `positions`. Documents
        are in order of position. A document is a number below 2^63, a hash of query and address,
        and a query is a hash. `split` is `part-2` of a file with such a name, or else `log`.

    Raises:
        InputError: at once, for a missing file, column or setting; while batches are taken, for a
            wrong row, with file, row, field, value and what was expected.

    Examples:
        >>> import pyarrow.feather
        >>> rows = {"query_no": [4, 4], "query_md5": ["a", "a"], "url_md5": ["x", "y"]}
        >>> rows |= {"position": [1, 3], "click": [0, 1]}
        >>> pa.feather.write_feather(pa.table(rows), "part-0_split-1.feather")
        >>> (page,) = next(iter(read("part-*.feather").batches)).to_pylist()
        >>> page["split"], page["positions"], page["clicks"]
        ('part-0', [1, 3], [False, True])
    """
    check_free([*bias, POSITIONS])
    tally = Tally(path, repeats=repeats)
    files = files_of(path)
    for file in files:
        _check_columns(file, ["query_no", *IDS, "position", "click", *bias])
    return Stream(_pages(files, list(bias), tally), tally.seen)


def documents_of(
    path: str | Path, *, columns: Sequence[str] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The distinct documents of a log: numbers [documents], features [documents, width] float32.

    Lexical columns pass sign(x) ln(1 + |x|), as in both papers. A document has the features of its
    first row. A number of eight bytes per document stays in memory, and no features but those of a
    batch.

    Args:
        path: as of `read`.
        columns: of `FEATURES`; the default is those that the first file has.

    Raises:
        InputError: see `read`; also for a vector of another width than before, a missing
            value, or one that is not finite.
    """
    seen, width = Seen(), None
    files = files_of(path)
    columns = feature_columns(files[0], columns)
    for file in files:
        for row, batch in _batches(file, [*IDS, *columns]):
            numbers = document_numbers(batch, file, row)
            fresh = seen.new(numbers)
            features = _features(batch.take(pa.array(fresh)), columns, file, row, fresh, width)
            width = features.shape[1]
            if len(fresh):
                yield numbers[fresh], features


def texts_of(path: str | Path) -> Iterator[pa.RecordBatch]:
    """The distinct documents of a log: `document`, and lists of token ids `query`, `title`,
    `abstract`. A document has the text of its first row.

    Args:
        path: as of `read`.

    Raises:
        InputError: see `read`; also for tokens that are not lists of whole numbers from 0.
    """
    seen = Seen()
    for file in files_of(path):
        for row, batch in _batches(file, [*IDS, *TOKENS]):
            numbers = document_numbers(batch, file, row)
            fresh = seen.new(numbers)
            texts = _texts(batch.take(pa.array(fresh)), file, row, fresh)
            yield pa.RecordBatch.from_pydict({"document": pa.array(numbers[fresh]), **texts})


def read_annotations(path: str | Path, *, columns: Sequence[str] | None = None) -> Rankings:
    """Read annotated documents.

    Args:
        path: as of `read`.
        columns: as of `documents_of`.

    Returns:
        Rankings. Queries are numbered from 0 in the order of rows; a change of `query_no` begins
        the next one, even if `query_id` stays the same.

    Raises:
        InputError: see `documents_of`; also for a label that is not a number from 0 on, or a query
            that returns after others.
    """
    queries, labels, features, width = [], [], [], None
    files = files_of(path)
    columns = feature_columns(files[0], columns)
    for file in files:
        for row, batch in _batches(file, ["query_no", LABEL, *columns]):
            queries.append(_whole(batch, "query_no", file, row))
            labels.append(_labels(batch[LABEL], file, row))
            features.append(_features(batch, columns, file, row, np.arange(len(batch)), width))
            width = features[-1].shape[1]
    if not sum(map(len, queries)):
        raise InputError("there is no query", path=path, expected="a row per annotated document")
    number, document = _annotated(np.concatenate(queries), path)
    return Rankings(number, document, np.concatenate(labels), np.concatenate(features))


def annotated_texts(path: str | Path) -> Iterator[pa.RecordBatch]:
    """The texts of `read_annotations`, row by row: lists of tokens `query`, `title`, `abstract`."""
    for file in files_of(path):
        for row, batch in _batches(file, list(TOKENS)):
            yield pa.RecordBatch.from_pydict(_texts(batch, file, row, np.arange(len(batch))))


def feature_columns(path: str | Path, columns: Sequence[str] | None = None) -> list[str]:
    """The columns of features of a file, or those that were asked for, after a check.

    Raises:
        InputError: a column is none of `FEATURES`, or the file has none.
    """
    for name in columns or ():
        if name not in FEATURES:
            raise InputError(f"{name!r}", field="columns", expected=nearest(name, FEATURES))
    found = column_names(path)
    chosen = [name for name in FEATURES if name in (found if columns is None else columns)]
    if not chosen:
        raise InputError("has no features", path=path, expected=nearest(EMBEDDING, FEATURES))
    _check_columns(path, chosen)
    return chosen


def document_numbers(batch: pa.RecordBatch, file: Path, row: int) -> np.ndarray:
    """[rows] int64 from 0: a hash of query and address, the same on every machine.

    63 bits: among 16 million documents two share a number with chance 1.4e-5.
    """
    return _hashed(pc.binary_join_element_wise(*_ids(batch, IDS, file, row), " "))


# Pages


def _pages(files: list[Path], bias: list[str], tally: Tally) -> Iterator[pa.RecordBatch]:
    for file in files:
        tally.path = file
        found = PART.search(file.name)
        split = f"part-{found.group(1)}" if found else LOG
        waiting, before = None, 0
        for _, batch in _batches(file, ["query_no", *IDS, "position", "click", *bias]):
            table = pa.Table.from_batches([batch])
            if waiting is not None:
                table = pa.concat_tables([waiting, table])
            # The last session may go on in the next batch.
            starts = _starts(table, file, before)
            if len(table) - starts[-1] > LONGEST:
                raise InputError(
                    f"row {before + starts[-1] + 1}: a session has more than {LONGEST:,} rows",
                    path=file,
                    field="query_no",
                    expected="a value per session",
                )
            yield from _whole_pages(table.slice(0, starts[-1]), file, before, split, bias, tally)
            waiting, before = table.slice(starts[-1]), before + int(starts[-1])
        if waiting is not None:
            yield from _whole_pages(waiting, file, before, split, bias, tally)


def _starts(table: pa.Table, file: Path, row: int) -> np.ndarray:
    """The first row of each session."""
    session = _whole(table, "query_no", file, row)
    starts = np.flatnonzero(np.diff(session, prepend=session[:1] - 1))
    _, first = np.unique(session[starts], return_index=True)
    again = np.setdiff1d(np.arange(len(starts)), first)
    if len(again):
        at = int(starts[again[0]])
        raise InputError(
            f"row {row + at + 1}: {session[at]} was there before other sessions",
            path=file,
            field="query_no",
            expected="the rows of a session one after the other",
        )
    return starts


def _whole_pages(
    table: pa.Table, file: Path, row: int, split: str, bias: list[str], tally: Tally
) -> Iterator[pa.RecordBatch]:
    if not len(table):
        return
    (batch,) = table.combine_chunks().to_batches()
    starts = _starts(table, file, row)
    page = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(batch)))
    query = _hashed(*_ids(batch, IDS[:1], file, row))
    if (other := query != query[starts][page]).any():
        at = int(np.flatnonzero(other)[0])
        raise InputError(
            f"row {row + at + 1}: {batch['query_md5'][at]} in a session of another query",
            path=file,
            field="query_md5",
            expected="one query per session",
        )
    position = _whole(batch, "position", file, row, low=1)
    order = np.lexsort([position, page])
    again = (np.diff(position[order]) == 0) & (np.diff(page[order]) == 0)
    if again.any():
        at = int(order[1:][again][0])
        raise InputError(
            f"row {row + at + 1}: {position[at]} is the position of two rows of a session",
            path=file,
            field="position",
            expected="a row per position",
        )
    clicks = tally.numbers(_whole(batch, "click", file, row), _at(row))
    tally.seen["pages"] += len(starts)
    offsets = pa.array(np.append(starts, len(batch)), pa.int32())

    def lists(values: pa.Array) -> pa.ListArray:
        return pa.ListArray.from_arrays(offsets, values.take(pa.array(order)))

    columns = {
        "split": pa.repeat(split, len(starts)),
        "query": pa.array(query[starts]),
        "documents": lists(pa.array(document_numbers(batch, file, row))),
        "clicks": lists(pa.array(clicks)),
        POSITIONS: lists(pa.array(position)),
        **{name: lists(_present(batch[name], name, file, row)) for name in bias},
    }
    yield conform(pa.RecordBatch.from_pydict(columns), file)


# Columns


def _batches(file: Path, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of rows before each batch, and the batch. A file without rows has none."""
    row = 0
    for batch in read_batches(file, columns, rows=ROWS):
        if len(batch):
            yield row, batch
        row += len(batch)


def _check_columns(file: Path, columns: list[str]) -> None:
    found = column_names(file)
    for name in columns:
        if name not in found:
            raise InputError(
                "the column is missing", path=file, field=name, expected=nearest(name, found)
            )


def _at(row: int) -> Callable[[int], str]:
    return lambda at: f"row {row + at + 1}"


def _present(column: pa.Array, name: str, file: Path, row: int) -> pa.Array:
    """The column, if no value is missing."""
    if column.null_count:
        at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"row {row + at + 1}: a value is missing", path=file, field=name, expected="a value"
        )
    return column


def _whole(batch, name: str, file: Path, row: int, low: int = 0) -> np.ndarray:
    column = batch[name]
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return whole_numbers(column, path=file, field=name, place=_at(row), low=low)


def _ids(batch: pa.RecordBatch, names: Sequence[str], file: Path, row: int) -> list[pa.Array]:
    found = []
    for name in names:
        column = _present(batch[name], name, file, row)
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise InputError(
                f"has type {str(column.type)[:40]}", path=file, field=name, expected="text"
            )
        found.append(column)
    return found


def _hashed(texts: pa.Array) -> np.ndarray:
    digests = (hashlib.blake2b(each.encode(), digest_size=8) for each in texts.to_pylist())
    found = np.frombuffer(b"".join(each.digest() for each in digests), "<u8")
    return (found >> np.uint64(1)).astype(np.int64)


def _features(batch, columns, file: Path, row: int, rows: np.ndarray, width) -> np.ndarray:
    """[rows, width] float32 of a batch whose rows are `rows` of the file's, counted from `row`."""
    parts = []
    for name in columns:
        column = batch[name]
        if column.null_count:
            at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise _wrong(file, row, rows, at, name, "a value is missing")
        if name == EMBEDDING:
            own = None if width is None else width - len(columns) + 1
            values = _vectors(column, file, row, rows, own)
        else:
            values = _numbers(column, column, file, name)[:, None]
            values = np.sign(values) * np.log1p(np.abs(values))
        if not (good := np.isfinite(values)).all():
            at, place = (int(each[0]) for each in np.nonzero(~good))
            raise _wrong(file, row, rows, at, name, f"{values[at, place]} was found")
        parts.append(values)
    return np.hstack(parts)


def _wrong(file, row, rows, at, name, message, expected="finite numbers") -> InputError:
    return InputError(
        f"row {row + int(rows[at]) + 1}: {message}", path=file, field=name, expected=expected
    )


def _vectors(column: pa.Array, file: Path, row: int, rows: np.ndarray, width) -> np.ndarray:
    if not hasattr(column, "value_lengths"):
        raise InputError(
            f"has type {str(column.type)[:40]}", path=file, field=EMBEDDING, expected="lists"
        )
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    width = width or (int(lengths[0]) if len(lengths) else 0)
    if (other := (lengths != width) | (lengths == 0)).any():
        at = int(np.flatnonzero(other)[0])
        expected = f"{width or 'some'} numbers, as before"
        raise _wrong(file, row, rows, at, EMBEDDING, f"a vector of {lengths[at]} numbers", expected)
    return _numbers(column.flatten(), column, file, EMBEDDING).reshape(len(column), width)


def _numbers(flat: pa.Array, column: pa.Array, file: Path, name: str) -> np.ndarray:
    if not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        raise InputError(
            f"has type {str(column.type)[:40]}", path=file, field=name, expected="numbers"
        )
    # Arrow's own cast of half precision is slower than NumPy's. Missing numbers become NaN.
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32)


def _labels(column: pa.Array, file: Path, row: int) -> np.ndarray:
    labels = _numbers(column, column, file, LABEL)
    if (bad := ~((labels >= 0) & (labels <= LARGEST_LABEL))).any():
        at = int(np.flatnonzero(bad)[0])
        found = column[at].as_py()
        raise InputError(
            f"row {row + at + 1}: {'no value' if found is None else found} was found",
            path=file,
            field=LABEL,
            expected="a number from 0 on",
        )
    return labels


def _annotated(query_no: np.ndarray, path) -> tuple[np.ndarray, np.ndarray]:
    """[rows] number of each row's query, and of its document there."""
    changes = np.diff(query_no, prepend=query_no[:1] - 1) != 0
    starts = np.flatnonzero(changes)
    values, count = np.unique(query_no[starts], return_counts=True)
    if (count > 1).any():
        raise InputError(
            f"{values[count > 1][0]} was there before other queries",
            path=path,
            field="query_no",
            expected="the rows of a query one after the other",
        )
    number = np.cumsum(changes) - 1
    return number, (np.arange(len(number)) - starts[number]).astype(np.int32)


def _texts(batch: pa.RecordBatch, file: Path, row: int, rows: np.ndarray) -> dict[str, pa.Array]:
    found = {}
    for name in TOKENS:
        column = _present(batch[name], name, file, row)
        flat = column.flatten() if hasattr(column, "value_lengths") else None
        if flat is None or not pa.types.is_integer(flat.type):
            raise InputError(
                f"has type {str(column.type)[:40]}",
                path=file,
                field=name,
                expected="a list of token ids",
            )
        tokens = flat.to_numpy(zero_copy_only=False)
        if flat.null_count or (len(tokens) and (tokens.min() < 0 or tokens.max() >= 2**31)):
            bad = ~((tokens >= 0) & (tokens < 2**31))
            at = np.searchsorted(np.cumsum(column.value_lengths()), np.argmax(bad), side="right")
            raise _wrong(
                file,
                row,
                rows,
                int(at),
                name,
                f"{flat[int(np.argmax(bad))]} was found",
                "token ids from 0 on",
            )
        found[name] = pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(column.value_lengths())), pa.int32()),
            pa.array(tokens.astype(np.int32)),
        )
    return found

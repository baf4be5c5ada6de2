"""Reader of logs that know documents by features: a row per result page, with a list of vectors.

The layout of Baidu-ULTR-UVA in clax-datasets: many parquet files of pages with the columns
`query_doc_features` (or `features`, by version), `positions` and `clicks`, and one file of
annotations with `query_doc_features` (or `features`) and `labels`. There are no ids. A document is
its vector: its number is a hash of it, so that equal vectors are one document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers import LOG
from twotowers.errors import InputError
from twotowers.files.artefacts import files_of
from twotowers.files.batches import read_batches
from twotowers.files.frames import Source
from twotowers.files.rankings import Rankings
from twotowers.logs.formats.pages import OPTIONAL, check_list, click_flags, named
from twotowers.logs.sessions import Stream, conform
from twotowers.logs.strays import Tally

LAYOUT = "a row per result page, with a vector per document"

FEATURES, CLICKS, LABELS = "features", "clicks", "labels"
NAMES = ("query_doc_features", "features")
"""The column of vectors, by version of the files."""
PAGES_LAYOUTS = tuple({FEATURES: name, CLICKS: "clicks"} for name in NAMES)
ANNOTATIONS_LAYOUTS = tuple({FEATURES: name, LABELS: "labels"} for name in NAMES)
ROWS = 1_000
"""Pages whose vectors are in memory at a time: 32 MB, of ten documents and 768 numbers each."""
LARGEST_LABEL = 2**24


def read(
    path: Source,
    *,
    columns: Mapping[str, str] | None = None,
    bias: Sequence[str] = (),
    split: str = LOG,
    repeats: str = "drop",
) -> Stream:
    """Read pages, without the features of their documents; see `documents_of`.

    Args:
        path: a parquet or feather file, or a pattern such as `part-*split-*.parquet`.
        columns: our name -> the file's, for features, clicks, query, split, user and bias features.
            The others are named as in the first of the known layouts that fits, and query, split
            and user are read if they exist. Without a query all pages have query 0.
        bias: further columns to keep: bias features, a list per page, such as the positions that
            documents without content left free.
        split: of all pages.
        repeats: 'drop' or 'error': further clicks on a document of one page.

    Returns:
        Pages as `twotowers.logs.sessions` describes, and the number of dropped clicks. A document
        is a number below 2^63. Its position is its place in the list.

    Raises:
        InputError: at once, for a missing file, column or setting; while batches are taken, for a
            row that is not a page of vectors of one width, with file, row, field, value and what
            was expected.

    Examples:
        >>> import pyarrow.parquet as pq
        >>> page = {"features": [[[0.5, 1.0], [2.0, 0.0]]], "clicks": [[0, 1]]}
        >>> pq.write_table(pa.table(page), "part-0_split-0.parquet")
        >>> log = read("part-*_split-0.parquet")
        >>> [batch["clicks"].to_pylist() for batch in log.batches]
        [[[False, True]]]
    """
    tally = Tally(path, repeats=repeats)
    optional = (*OPTIONAL, "query")
    files = [(each, named(each, PAGES_LAYOUTS, columns, bias, optional)) for each in files_of(path)]
    return Stream(_pages(files, split, tally), tally.seen)


def documents_of(
    path: str | Path, *, columns: Mapping[str, str] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The distinct documents of a log: numbers [documents], features [documents, width] float32.

    A set of all numbers is in memory, about 60 bytes each, and no features but those of a batch.

    Args:
        path, columns: as of `read`.

    Raises:
        InputError: see `read`.
    """
    seen: set[int] = set()
    width = None
    # The other columns are of pages, and `read` checks them.
    own = {FEATURES: columns[FEATURES]} if columns and FEATURES in columns else {}
    layouts = [{FEATURES: name} for name in NAMES]
    for file in files_of(path):
        names = named(file, layouts, own, (), ())
        for row, batch in _batches(file, [names[FEATURES]]):
            _, values = _vectors(batch[names[FEATURES]], file, row, width)
            width = values.shape[1]
            numbers = numbers_of(values)
            _, first = np.unique(numbers, return_index=True)
            fresh = [at for at in np.sort(first) if int(numbers[at]) not in seen]
            seen.update(numbers[fresh].tolist())
            if fresh:
                yield numbers[fresh], values[fresh]


def read_annotations(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Rankings:
    """Read annotated documents: a row per query, with lists of vectors and of labels.

    Args:
        path: as of `read`.
        columns: our name -> the file's, for features and labels.

    Returns:
        Rankings. Queries are numbered from 0 in the order of rows.

    Raises:
        InputError: see `read`; also for a query without documents, or a label that is not
            a number from 0 on.
    """
    lengths, labels, features, width = [], [], [], None
    for file in files_of(path):
        names = named(file, ANNOTATIONS_LAYOUTS, columns, (), ())
        for row, batch in _batches(file, list(names.values())):
            offsets, values = _vectors(batch[names[FEATURES]], file, row, width)
            width = values.shape[1]
            own = np.diff(offsets)
            labels.append(_labels(batch[names[LABELS]], own, file, row))
            lengths.append(own)
            features.append(values)
    if not lengths:
        raise InputError("there is no query", path=path, expected="a row per query")
    length = np.concatenate(lengths)
    ends = np.cumsum(length)
    return Rankings(
        query=np.repeat(np.arange(len(length)), length),
        document=(np.arange(ends[-1]) - np.repeat(ends - length, length)).astype(np.int32),
        label=np.concatenate(labels),
        features=np.concatenate(features),
    )


def numbers_of(vectors: np.ndarray) -> np.ndarray:
    """[documents] int64 from 0: a hash of each row's bytes.

    63 bits: among the 15 million documents of Baidu-ULTR-UVA two share a number with chance 1e-5.
    """
    rows = np.ascontiguousarray(vectors, "<f4")
    # -0.0 and 0.0 are one number.
    whole = (rows + np.float32(0)).view(np.uint8).reshape(len(rows), -1)
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in whole)
    return (np.frombuffer(digests, "<u8") >> np.uint64(1)).astype(np.int64)


def _pages(files: list, split: str, tally: Tally) -> Iterator[pa.RecordBatch]:
    width = None
    for file, names in files:
        tally.path = file
        for row, batch in _batches(file, list(names.values())):
            page = {ours: batch[theirs] for ours, theirs in names.items()}
            offsets, values = _vectors(page.pop(FEATURES), file, row, width)
            width = values.shape[1]
            check_list(page[CLICKS], CLICKS, file, row)
            lists = pa.array(offsets, pa.int32())
            page |= {
                "split": page.get("split", pa.repeat(split, len(batch))),
                "query": page.get("query", pa.repeat(pa.scalar(0, pa.int64()), len(batch))),
                "documents": pa.ListArray.from_arrays(lists, pa.array(numbers_of(values))),
                CLICKS: click_flags(page[CLICKS], tally, file, row),
            }
            yield conform(pa.RecordBatch.from_pydict(page), file, row)


def _batches(file: Path, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of rows before each batch, and the batch."""
    row = 0
    for batch in read_batches(file, columns, rows=ROWS):
        yield row, batch
        row += len(batch)


def _vectors(
    column: pa.Array, file: Path, row: int, width: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Where each page's vectors begin and end [pages + 1], and all of them [documents, width]."""
    check_list(column, FEATURES, file, row)
    offsets = np.concatenate([[0], np.cumsum(column.value_lengths().to_numpy())])

    def at_row(document: int) -> str:
        return f"row {row + int(np.searchsorted(offsets, document, side='right'))}"

    def wrong(document: int, message: str, expected: str) -> InputError:
        return InputError(
            f"{at_row(document)}: {message}", path=file, field=FEATURES, expected=expected
        )

    vectors = column.flatten()
    if not hasattr(vectors, "value_lengths"):
        raise InputError(
            f"has type {str(column.type)[:40]}",
            path=file,
            field=FEATURES,
            expected="a list of vectors per page",
        )
    if vectors.null_count:
        at = int(np.flatnonzero(vectors.is_null().to_numpy(zero_copy_only=False))[0])
        raise wrong(at, "a vector is missing", "a vector per document")
    lengths = vectors.value_lengths().to_numpy()
    width = width or (int(lengths[0]) if len(lengths) else 0)
    if (lengths != width).any() or (len(lengths) and not width):
        at = int(np.flatnonzero((lengths != width) | (lengths == 0))[0])
        raise wrong(
            at, f"a vector of {lengths[at]} numbers", f"{width or 'some'} numbers, as before"
        )
    numbers, values = _numbers(vectors, column, file, FEATURES, "vectors of numbers")
    values = values.reshape(len(lengths), width)
    if not np.isfinite(values).all():
        at, place = (int(each[0]) for each in np.nonzero(~np.isfinite(values)))
        found = numbers[at * width + place].as_py()
        raise wrong(at, f"{'no value' if found is None else found} was found", "finite numbers")
    return offsets, values


def _numbers(
    lists: pa.Array, column: pa.Array, file: Path, field: str, expected: str
) -> tuple[pa.Array, np.ndarray]:
    """The numbers of some lists as they are in the file, and as float32 with NaN for missing ones.

    Args:
        lists: the lists, of a column or inside of it.
        column: the whole column, whose type an error names.
    """
    flat = lists.flatten()
    if not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        raise InputError(
            f"has type {str(column.type)[:40]}", path=file, field=field, expected=expected
        )
    return flat, pc.cast(flat, pa.float32(), safe=False).to_numpy(zero_copy_only=False)


def _labels(column: pa.Array, lengths: np.ndarray, file: Path, row: int) -> np.ndarray:
    """[documents] float32."""
    check_list(column, LABELS, file, row)
    own = column.value_lengths().to_numpy()
    if (wrong := (own != lengths) | (own == 0)).any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"row {row + at + 1}: {own[at]} labels and {lengths[at]} documents",
            path=file,
            field=LABELS,
            expected="a label per document, and a document or more",
        )
    flat, labels = _numbers(column, column, file, LABELS, "a list of numbers per query")
    bad = ~((labels >= 0) & (labels <= LARGEST_LABEL))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        page = int(np.searchsorted(np.cumsum(own), at, side="right"))
        found = flat[at].as_py()
        raise InputError(
            f"row {row + page + 1}: {'no value' if found is None else found} was found",
            path=file,
            field=LABELS,
            expected="a number from 0 on",
        )
    return labels

"""Reader of LETOR text: SVMlight with query ids, `<label> qid:<query> <index>:<value> ...`."""

import gzip
from codecs import BOM_UTF8
from io import BytesIO
from pathlib import Path

import numpy as np

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings

CHUNK_BYTES = 1 << 23
"""About how much text is parsed at a time: scikit-learn's arrays take several times as much."""
LARGEST = np.finfo(np.float32).max


def read_letor(path: str | Path, *, width: int, label_max: float = np.inf) -> Rankings:
    """Read a LETOR file, perhaps with `.gz`, with scikit-learn.

    Features [rows, width] float32 that a row does not name are 0. A number beyond the range of
    float32 becomes the largest float32 of its sign: Istella writes 1.79769313486e+308 for "very
    large". Labels are from 0. Queries are in the order of their first row, and `document` numbers
    the rows of a query from 0 in file order. If the rows of a query are apart, the later ones are
    moved up behind the earlier ones. This takes a second copy of the features; else memory holds
    the arrays and a chunk of text. Comments (`#` to the end of the line), blank lines, CRLF line
    ends and a mark of UTF-8 are allowed.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="a LETOR text file")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        lines = sum(1 for _ in file)
        file.seek(0)
        label, query = np.zeros(lines, np.float32), np.zeros(lines, np.int64)
        features = np.zeros((lines, width), np.float32)
        rows = line = 0
        while chunk := file.readlines(CHUNK_BYTES):
            if not line:
                chunk[0] = chunk[0].removeprefix(BOM_UTF8)
            values, labels, queries = _parsed(chunk, path, line + 1, width, label_max)
            new = slice(rows, rows + len(labels))
            label[new], query[new], features[new] = labels, queries, values
            rows, line = new.stop, line + len(chunk)
    if not rows:
        raise InputError("the file holds no row", path=path, expected="<label> qid:<query> ...")
    return _grouped(query[:rows], label[:rows], features[:rows])


def _parsed(
    lines: list[bytes], path: Path, first: int, width: int, label_max: float
) -> tuple[np.ndarray, ...]:
    """Features, labels and queries of some lines, the first of which has a number."""
    from sklearn.datasets import load_svmlight_file  # slow to import

    try:
        values, labels, queries = load_svmlight_file(
            BytesIO(b"".join(lines)), n_features=width, zero_based=False, query_id=True
        )
        if len(queries) != len(labels):
            raise ValueError("a row has no qid")
        if np.isnan(values.data).any():
            raise ValueError("a value is not a number")
        if not ((labels >= 0) & (labels <= label_max)).all():
            raise ValueError(f"a label is not in 0 to {label_max:g}")
    except (ValueError, OverflowError) as error:
        if len(lines) == 1:
            text = lines[0].decode("ascii", "backslashreplace").strip()
            raise InputError(
                f"{text[:60]!r}: {error}",
                path=path,
                line=first,
                expected=f"<label> qid:<query> <index>:<value> ... with indices up to {width}",
            ) from error
        for number, line in enumerate(lines, start=first):
            _parsed([line], path, number, width, label_max)
        raise
    return np.clip(values.toarray(), -LARGEST, LARGEST), labels, queries


def _grouped(query: np.ndarray, label: np.ndarray, features: np.ndarray) -> Rankings:
    """The rows of each query together, in the order of the queries' first rows."""
    _, first, inverse = np.unique(query, return_index=True, return_inverse=True)
    place = first[inverse]  # [rows] the row at which the query of each row first occurs
    if (np.diff(place) < 0).any():
        order = np.argsort(place, kind="stable")
        query, label, features, place = (
            column[order] for column in (query, label, features, place)
        )
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    lengths = np.diff(starts, append=len(place))
    return Rankings.of_lists(lengths, label, features, query[starts])

"""Reader of LETOR text: SVMlight with query ids, `<label> qid:<query> <index>:<value> ...`.

The text is parsed as arrays of bytes, a chunk at a time. NumPy finds the tokens, and Arrow's
C++ parser reads the decimals. A chunk that breaks a rule of the format is parsed again line by
line, to find the line and the token at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from twotowers.datasets.sources import WIDEST
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings

# The arrays over a chunk fit into the cache, and the overhead of NumPy's calls is small.
CHUNK_BYTES = 1 << 20
# A line of 700 features has about 10 kB. Without a limit, a file without line ends (a picture,
# an archive) would be read into memory whole.
LONGEST_LINE = 1 << 24
# This many digits always fit into int64.
MOST_DIGITS = 18

NEWLINE, SPACE, COLON, POINT, ZERO, X = b"\n :.0x"
BLANKS_TO_SPACE = bytes.maketrans(b"\r\t\v\f", b"    ")
COMMENT = re.compile(rb"#[^\n]*")
INTEGER = re.compile(rb"\d{1,%d}" % MOST_DIGITS)


def read_letor(
    path: str | Path, *, width: int | None = None, label_max: float | None = None
) -> Rankings:
    """Read a LETOR file. Memory holds the returned arrays and one chunk of text.

    Features that a row does not name are 0. A number beyond the range of float32 becomes
    the largest float32 of its sign: Istella writes 1.79769313486e+308 for "very large".
    Queries are in the order of their first row. If the rows of a query are apart, the later ones
    are moved up behind the earlier ones. This takes a second copy of the features.

    Args:
        path: The text file. Comments (`#` to the end of the line), blank lines, tabs,
            repeated or trailing blanks and CRLF line ends are allowed.
        width: Number of features; None for the largest index in the file.
        label_max: The highest allowed label; None for no limit. Labels start at 0.

    Returns:
        Rankings with features [rows, width] float32, all finite. `document` numbers the rows of
        a query from 0 in file order.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="a LETOR text file")
    try:
        return _read(path, width, label_max)
    except MemoryError as error:
        raise InputError(
            f"does not fit into memory: {error}", path=path, expected="4 bytes a row and feature"
        ) from error


def _read(path: Path, width: int | None, label_max: float | None) -> Rankings:
    table = _Table(lines=_count_lines(path), width=width)
    with path.open("rb") as file:
        for line, text in _chunks(file, path):
            try:
                rows = _parse(text, table.width_limit, label_max)
            except ValueError:
                raise _first_error(text, path, line, table.width_limit, label_max) from None
            table.add(rows)
    if not table.rows:
        raise InputError("the file holds no row", path=path, expected="<label> qid:<query> ...")
    if not table.features.shape[1]:
        raise InputError("no row has a feature", path=path, expected="<index>:<value> ...")
    return table.rankings()


@dataclass
class _Rows:
    """The rows of a chunk. The pairs of row i follow those of row i - 1.

    Attributes:
        label: [rows] float32.
        query: [rows] int64.
        pairs: [rows] int64, number of index:value pairs of each row.
        index: [pairs.sum()] int64, 1-based, ascending within a row.
        value: [pairs.sum()] float32.
    """

    label: np.ndarray
    query: np.ndarray
    pairs: np.ndarray
    index: np.ndarray
    value: np.ndarray


@dataclass
class _Table:
    """The arrays of the whole file, filled chunk by chunk.

    Args:
        lines: An upper bound on the number of rows. Memory that is never filled is never
            touched, so the bound costs only address space.
        width: The declared width, or None.
    """

    lines: int
    width: int | None
    rows: int = 0
    label: np.ndarray = field(init=False)
    query: np.ndarray = field(init=False)
    features: np.ndarray | None = None

    def __post_init__(self):
        self.label = np.empty(self.lines, np.float32)
        self.query = np.empty(self.lines, np.int64)

    @property
    def width_limit(self) -> int:
        return WIDEST if self.width is None else self.width

    def add(self, new: _Rows) -> None:
        self._make_room(int(new.index.max(initial=0)))
        rows = slice(self.rows, self.rows + len(new.label))
        self.label[rows] = new.label
        self.query[rows] = new.query
        width = self.features.shape[1]
        if (new.pairs == width).all():
            # Every row has all indices in order, so the values are the table.
            self.features[rows] = new.value.reshape(len(new.pairs), width)
        else:
            first = np.arange(rows.start, rows.stop) * width
            flat = np.repeat(first, new.pairs) + (new.index - 1)
            self.features.reshape(-1)[flat] = new.value
        self.rows = rows.stop

    def _make_room(self, highest: int) -> None:
        """Allocate the features, or widen them if no width was declared."""
        width = highest if self.width is None else self.width
        if self.features is None:
            self.features = np.zeros((self.lines, width), np.float32)
        elif width > self.features.shape[1]:
            narrow = self.features[: self.rows]
            self.features = np.zeros((self.lines, width), np.float32)
            self.features[: self.rows, : narrow.shape[1]] = narrow

    def rankings(self) -> Rankings:
        query, label, features = (
            column[: self.rows] for column in (self.query, self.label, self.features)
        )
        _, first, inverse = np.unique(query, return_index=True, return_inverse=True)
        place = first[inverse]  # [rows] the row at which the query of each row first occurs
        if (np.diff(place) < 0).any():
            order = np.argsort(place, kind="stable")
            query, label, features, place = (
                column[order] for column in (query, label, features, place)
            )
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        lengths = np.diff(starts, append=len(place))
        document = np.arange(len(place)) - np.repeat(starts, lengths)
        return Rankings(query, document.astype(np.int32), label, features)


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(CHUNK_BYTES), b"")
        return sum(block.count(b"\n") for block in blocks) + 1


def _chunks(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, text of whole lines, each ended by a newline)."""
    line, rest = 1, b""
    while block := file.read(CHUNK_BYTES):
        end = block.rfind(b"\n") + 1
        if end:
            text = rest + block[:end]
            yield line, text
            line += text.count(b"\n")
            rest = block[end:]
        else:
            rest += block
        if len(rest) > LONGEST_LINE:
            raise InputError(
                f"the line is longer than {LONGEST_LINE} bytes; this is not a LETOR text file",
                path=path,
                line=line,
                expected="<label> qid:<query> <index>:<value> ...",
            )
    if rest:
        yield line, rest + b"\n"


def _parse(text: bytes, width: int, label_max: float | None) -> _Rows:
    """Parse whole lines without a Python loop over lines or tokens.

    A row is label, `qid`, query, and then pairs of index and value. A blank follows every second
    token, a colon the others, and a line end the last one.
    """
    text = _plain(text)
    codes = np.frombuffer(text, np.uint8)
    newline, colon = codes == NEWLINE, codes == COLON
    ends = np.flatnonzero((codes == SPACE) | newline | colon)
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    blank, there = ~colon[ends], starts < ends
    # Between two blanks there is nothing. A colon has something on both sides.
    _require(there | (blank & np.append(True, blank[:-1])[: len(blank)]))
    starts, ends, blank = starts[there], ends[there], blank[there]
    until = np.searchsorted(starts, np.flatnonzero(newline))
    counts = np.diff(until, prepend=0)
    filled = counts > 0
    first, counts = (until - counts)[filled], counts[filled]
    place = np.arange(len(ends)) - np.repeat(first, counts)
    odd = place % 2 == 1
    _require(blank != odd)
    _require((counts >= 3) & (counts % 2 == 1))
    _require(ends[first + 1] - starts[first + 1] == 3)
    for offset, letter in enumerate(b"qid"):
        _require(codes[starts[first + 1] + offset] == letter)

    def whole(tokens: np.ndarray) -> np.ndarray:
        start, end = starts[tokens], ends[tokens]
        # Arrow also takes signs, and numbers like 0x1f. Codes below "0" wrap to above 9.
        _require((codes[start] - ZERO <= 9) & (codes[start + 1] | 32 != X))
        _require(end - start <= MOST_DIGITS)
        return _numbers(text, start, end, np.int64)

    label = _numbers(text, starts[first], ends[first], np.float32)
    highest = np.inf if label_max is None else label_max
    _require(np.isfinite(label) & (label >= 0) & (label <= highest))
    index, value = (np.flatnonzero((place > 2) & kind) for kind in (odd, ~odd))
    number = whole(index)
    rises = np.diff(number, prepend=0) > 0
    _require((number >= 1) & (number <= width) & (rises | (place[index] == 3)))
    values = _values(text, codes, starts[value], ends[value])
    return _Rows(label, whole(first + 2), (counts - 3) // 2, number, values)


def _require(condition: np.ndarray) -> None:
    if not condition.all():
        raise ValueError("not LETOR")


def _plain(text: bytes) -> bytes:
    """The text without comments, and with one kind of blank."""
    return (COMMENT.sub(b"", text) if b"#" in text else text).translate(BLANKS_TO_SPACE)


def _values(text: bytes, codes: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """[pairs] float32, finite. Numbers beyond float32 become its largest number."""
    value = _numbers(text, starts, ends, np.float32)
    infinite = np.flatnonzero(~np.isfinite(value))
    if len(infinite):
        # A number that overflowed ends in a digit or a point. "inf" and "nan" do not.
        last = codes[ends[infinite] - 1]
        _require((last - ZERO <= 9) | (last == POINT))
        largest = np.finfo(np.float32).max
        value[infinite] = np.clip(value[infinite], -largest, largest)
    return value


def _numbers(text: bytes, starts: np.ndarray, ends: np.ndarray, kind: type) -> np.ndarray:
    """[spans] numbers; float32 is rounded correctly, overflow gives inf, nan and inf are parsed."""
    # An Arrow string array is text plus boundaries. Every second element is the text between two
    # spans and is declared null. Arrow then parses the spans without a copy.
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[::2], bounds[1::2] = starts, ends
    count = max(len(bounds) - 1, 0)
    every_second = np.full(count // 8 + 1, 0b01010101, np.uint8)
    spans = pa.StringArray.from_buffers(
        count, pa.py_buffer(bounds), pa.py_buffer(text), pa.py_buffer(every_second)
    )
    numbers = spans.cast(pa.from_numpy_dtype(kind)).buffers()[1]
    return np.frombuffer(numbers, kind, count)[::2].copy()


def _first_error(
    text: bytes, path: Path, line: int, width: int, label_max: float | None
) -> InputError:
    """The error of the first line that breaks a rule.

    Args:
        text: Lines that `_parse` rejected.
        path: Their file.
        line: The number of the first line.
        width, label_max: See `_parse`.
    """
    for number, row in enumerate(text.split(b"\n"), start=line):
        try:
            _parse(row + b"\n", width, label_max)
        except ValueError:
            where, what, expected = _complaint(row, width, label_max)
            return InputError(what, path=path, line=number, field=where, expected=expected)
    raise AssertionError("every line alone is valid")


def _complaint(row: bytes, width: int, label_max: float | None) -> tuple[str, str, str]:
    """Field, fault and expectation for a row that breaks a rule."""
    label, *tokens = _plain(row).split()
    number = _number(label)
    if number is None or not np.isfinite(number):
        return "label", f"{_shown(label)} is not a finite number", "<label> qid:<query> ..."
    if number < 0 or (label_max is not None and number > label_max):
        highest = "" if label_max is None else f" and at most {label_max:g}"
        return "label", f"{_shown(label)} is out of range", f"a number of at least 0{highest}"
    if not tokens or not tokens[0].startswith(b"qid:"):
        found = _shown(tokens[0]) if tokens else "the end of the line"
        return "qid", f"is missing; {found} follows the label", "qid:<whole number>"
    if not INTEGER.fullmatch(tokens[0][len(b"qid:") :]):
        return (
            "qid",
            f"{_shown(tokens[0])} has no whole number",
            f"qid:<up to {MOST_DIGITS} digits>",
        )
    return _pair_complaint(tokens[1:], width)


def _pair_complaint(tokens: list[bytes], width: int) -> tuple[str, str, str]:
    previous = 0
    for token in tokens:
        index, colon, value = token.partition(b":")
        if not colon or not INTEGER.fullmatch(index):
            return "feature", f"{_shown(token)} is not index:value", "<whole number>:<number>"
        if not 1 <= int(index) <= width:
            return "feature", f"{_shown(token)} has index {int(index)}", f"an index in 1..{width}"
        if int(index) <= previous:
            fault = "occurs twice" if int(index) == previous else f"comes after {previous}"
            what = f"{_shown(token)}: index {int(index)} {fault} in the row"
            return "feature", what, "indices in ascending order"
        previous = int(index)
        number = _number(value)
        if number is None or np.isnan(number) or value[-1:].isalpha():
            what = f"{_shown(token)} has no finite value"
            return "feature", what, "<whole number>:<finite number>"
    raise AssertionError("the row breaks no rule")


def _number(token: bytes) -> float | None:
    """The number as float32, or None."""
    try:
        return float(_numbers(token, np.array([0]), np.array([len(token)]), np.float32)[0])
    except ValueError:
        return None


def _shown(token: bytes) -> str:
    """The token for a message, printable and shortened."""
    text = token.decode("ascii", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "...").replace("\\\\", "\\")

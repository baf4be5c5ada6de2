"""The rules of LETOR in plain Python, line by line. The fast reader must agree."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from twotowers.files.rankings import Rankings

DECIMAL = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
LABEL = re.compile(DECIMAL)
QUERY = re.compile(rb"qid:(\d{1,18})")
PAIR = re.compile(rb"(\d{1,18}):(%s)" % DECIMAL)
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Row:
    """One line: label, query id, and {1-based index: value}."""

    label: float
    query: int
    pairs: dict[int, float]


def parse(text: bytes, width: int, label_max: float) -> list[Row] | int:
    """The rows of a LETOR text, or the 1-based number of the first line that is wrong."""
    rows = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        tokens = line.partition(b"#")[0].split()
        if tokens:
            row = _row(tokens, width, label_max)
            if row is None:
                return number
            rows.append(row)
    return rows


def _row(tokens: list[bytes], width: int, label_max: float) -> Row | None:
    label, *rest = tokens
    query = QUERY.fullmatch(rest[0]) if rest else None
    if not LABEL.fullmatch(label) or not 0 <= float(label) <= label_max or not query:
        return None
    pairs, previous = {}, 0
    for token in rest[1:]:
        found = PAIR.fullmatch(token)
        if not found or not previous < int(found[1]) <= width:
            return None
        previous = int(found[1])
        pairs[previous] = float(found[2])
    return Row(float(label), int(query[1]), pairs)


def assert_blamed(line: int | None, expected: list[Row] | int) -> None:
    """Assert that the reader blames the oracle's line or, since it is more lenient, a later one."""
    if line is None:
        assert expected == [], "there are rows"
    else:
        assert isinstance(expected, int), "the oracle reads it"
        assert expected <= line


def assert_equal(rankings: Rankings, rows: list[Row], width: int) -> None:
    """Assert equal rows, in the order of their queries' first rows.

    Features may differ in the last bit. Here text becomes float64 and then float32. In the reader
    it becomes float32 directly. The two may round differently.
    """
    by_query: dict[int, list[Row]] = {}
    for row in rows:
        by_query.setdefault(row.query, []).append(row)
    ordered = [row for group in by_query.values() for row in group]
    assert rankings.query.tolist() == [row.query for row in ordered]
    assert rankings.document.tolist() == [
        number for group in by_query.values() for number in range(len(group))
    ]
    _assert_near(rankings.label, np.array([row.label for row in ordered]))
    expected = np.zeros((len(ordered), width))
    for values, row in zip(expected, ordered, strict=True):
        values[np.fromiter(row.pairs, int) - 1] = list(row.pairs.values())
    _assert_near(rankings.features, expected)


def _assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float32
    expected = np.clip(expected, -LARGEST, LARGEST).astype(np.float32)
    np.testing.assert_array_max_ulp(found, expected, maxulp=1)

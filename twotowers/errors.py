"""The one error that bad input raises: it says where, what, and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path

LONGEST = 2_000
"""Characters of each part of a message."""


class InputError(ValueError):
    """Bad input from outside the program: a file, a configuration, an argument.

    Args:
        message: What is wrong, in one sentence, naming the value found.
        path: The file it was found in.
        line: The 1-based line of that file.
        field: The column, key or parameter.
        expected: What would have been accepted.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        expected: str | None = None,
    ):
        self.path, self.line, self.field, self.expected = path, line, field, expected
        where = ":".join(str(part) for part in (path, line) if part is not None)
        parts = [where, *map(_shortened, (field, message))]
        text = ": ".join(part for part in parts if part)
        super().__init__(f"{text} (expected {_shortened(expected)})" if expected else text)


def _shortened(text: str | None) -> str | None:
    """A value found may be of any length; a message may not."""
    return text if text is None or len(text) <= LONGEST else text[:LONGEST] + "..."


def check_range(
    value: float,
    *,
    field: str,
    low: float,
    high: float,
    path: str | Path | None = None,
    whole: bool = False,
) -> float:
    """Return `value` if it is a number in [low, high], else raise InputError naming all three.

    NumPy's numbers are numbers; with `whole` only integers are.
    """
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        raise InputError(
            f"{value!r} is out of range",
            field=field,
            path=path,
            expected=f"{'an integer' if whole else 'a number'} in [{low:g}, {high:g}]",
        )
    return value


def nearest(name: str, valid: Iterable[str]) -> str:
    """What was expected instead of a mistyped name: all valid ones, and the nearest."""
    valid = sorted(valid)
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"one of {', '.join(map(repr, valid))}{hint}"

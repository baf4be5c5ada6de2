"""Columns of some rows of a file, checked: an error names file, row, column and value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, nearest

MOST = 2**53
"""Larger counts and positions are wrong."""
DECIMAL_COMMA = "^(-?[0-9]+),0{1,2}$"
"""A whole number as a spreadsheet writes it in many countries; 1,000 may be another."""
LARGEST = float(np.finfo(np.float32).max)
LARGEST_LABEL = 2**24


def wrong_type(kind: pa.DataType, field: str, path: object, expected: str) -> InputError:
    return InputError(f"has type {str(kind)[:40]}", path=path, field=field, expected=expected)


def check_names(wanted: Iterable[str], found: Sequence[str], path: object) -> None:
    """Raise InputError for a wanted column that is not among `found`, or more than once.

    `path` is the file, for the message.
    """
    for name in wanted:
        times = list(found).count(name)
        if times != 1:
            raise InputError(
                f"there are {times} columns of that name" if times else "the column is missing",
                path=path,
                field=name,
                expected=nearest(name, {*found}),
            )


def check_types(found: pa.Schema, types: Mapping[str, pa.DataType | None], path: object) -> None:
    """Raise InputError unless each column is there once and has its type (None allows any)."""
    check_names(types, found.names, path)
    for name, wanted in types.items():
        if wanted is not None and (kind := found.field(name).type) != wanted:
            raise wrong_type(kind, name, path, str(wanted))


def check_ids(kind: pa.DataType, field: str, path: object) -> None:
    """Raise InputError unless ids of this type are whole numbers or text."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_integer(inner) or is_text(inner)):
        fraction = pa.types.is_floating(inner)
        hint = "; pandas makes fractions of whole numbers where some are missing"
        raise wrong_type(kind, field, path, f"whole numbers or text{hint if fraction else ''}")


def is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


@dataclass(frozen=True)
class Rows:
    """Where some rows are in a file. Checks of their columns name the row of the first error.

    Messages count rows from 1. The values that are checked are a column with a value per row, or
    the values in its lists.

    Attributes:
        path: the file.
        before: number of rows in the file before these.
        number: [rows] number of each row, from 0 for the first one after `before`. If None, the
            rows follow each other.
        lists: the column whose lists hold the values; None if each row has one value.

    Example:
        >>> Rows("a.csv", 10).whole(pa.array(["1", "2.5"]), "clicks")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        twotowers.errors.InputError: a.csv: clicks: row 12: '2.5' was found (expected ...
    """

    path: object
    before: int = 0
    number: np.ndarray | None = None
    lists: pa.Array | None = None

    def inside(self, column: pa.Array) -> Rows:
        """The values in the lists of a column."""
        return replace(self, lists=column)

    def name(self, at: int) -> str:
        """A row, or that of a value, in words."""
        if self.lists is not None:
            at = int(np.searchsorted(np.cumsum(self.lists.value_lengths()), at, side="right"))
        return f"row {self.before + int(at if self.number is None else self.number[at]) + 1}"

    def check(
        self,
        good: np.ndarray | pa.Array,
        field: str,
        found: Callable[[int], str],
        expected: str,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Raise InputError for the first row that is not good; `found` says what it holds, and
        `settings` would read it."""
        if not isinstance(good, np.ndarray):
            good = good.to_numpy(zero_copy_only=False)
        if not good.all():
            at = int(np.argmin(good))
            message = f"{self.name(at)}: {found(at)}"
            where = {"path": self.path, "field": field, "settings": settings}
            raise InputError(message, expected=expected, **where)

    def present(self, column: pa.Array, field: str, expected: str = "a value") -> pa.Array:
        """The column, if no value is missing."""
        if column.null_count:
            self.check(column.is_valid(), field, lambda at: "a value is missing", expected)
        return column

    def a_list(self, column: pa.Array, field: str) -> pa.Array:
        """The column, if it holds lists and none is missing."""
        if not hasattr(column, "value_lengths"):
            raise wrong_type(column.type, field, self.path, "a list per page")
        return self.present(column, field, "a list")

    def whole(
        self, column: pa.Array, field: str, low: int = 0, hint: str = "", high: int = MOST
    ) -> np.ndarray:
        """Counts or positions, as int64, from `low` to `high`.

        The column has integers, floats without a fraction, booleans, or text that holds one of
        these. `hint` is what else an error says after what is expected.
        """
        expected = f"a whole number from {low} {'on' if high == MOST else f'to {high}'}{hint}"
        self.present(column, field, expected)
        if is_text(column.type):
            column = pc.utf8_trim_whitespace(column)
        numbers = _numbers(column)
        if numbers is None and is_text(column.type):
            column = pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1")
            numbers = _numbers(column)
        if numbers is None:
            each = (_numbers(column.slice(at, 1)) for at in range(len(column)))
            good = np.array([one is not None for one in each])
            good[np.argmin(good)] = False
        else:
            with np.errstate(invalid="ignore"):
                good = (numbers >= low) & (numbers <= high)
                good &= numbers == np.floor(numbers.astype(float))
        self.check(good, field, lambda at: value_text(column[at]), expected)
        return numbers.astype(np.int64)

    def runs(self, column: pa.Array, field: str, expected: str, *, others: str) -> np.ndarray:
        """The first row of each run of equal values. None is missing, or returns after others.

        `others` are the other values, in words.
        """
        runs = pc.run_end_encode(column)
        starts, own = np.append(0, runs.run_ends.to_numpy()[:-1]), runs.values
        replace(self, number=starts).check(
            ~own.to_pandas().duplicated().to_numpy(),
            field,
            lambda at: f"{str(own[at])[:40]} was there before other {others}",
            expected,
        )
        return starts

    def numbers(
        self,
        values: pa.Array,
        field: str,
        expected: str = "finite numbers",
        *,
        low: float = -LARGEST,
        high: float = LARGEST,
        width: int = 1,
    ) -> np.ndarray:
        """Finite numbers from `low` to `high`, as float32; `width` of them are of one row."""
        if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            raise wrong_type(values.type, field, self.path, expected)
        # Arrow's own cast of half precision is slower than NumPy's.
        numbers = np.asarray(values.to_numpy(zero_copy_only=False), np.float32)
        good = (numbers >= low) & (numbers <= high)
        self.check(
            good.reshape(-1, width).all(1),
            field,
            lambda _: value_text(values[int(np.argmin(good))]),
            expected,
        )
        return numbers

    def labels(self, values: pa.Array, field: str) -> np.ndarray:
        """[rows] float32 from 0 on."""
        return self.numbers(values, field, "a number from 0 on", low=0, high=LARGEST_LABEL)

    def vectors(self, column: pa.Array, field: str, width: int | None) -> np.ndarray:
        """[rows, width] float32: lists of one length, of finite numbers.

        `width` is that of vectors before, None if there were none.
        """
        if not hasattr(column, "value_lengths"):
            raise wrong_type(column.type, field, self.path, "lists of numbers")
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        width = width or (int(lengths[0]) if len(lengths) else 0)
        self.check(
            (lengths == width) & (lengths > 0),
            field,
            lambda at: f"a vector of {lengths[at]} numbers",
            f"{width or 'some'} numbers, as before",
        )
        values = self.numbers(column.flatten(), field, width=max(width, 1))
        return values.reshape(len(column), width)


LONGEST = 10_000
"""Most rows of a run. If there are more, the column is the wrong one."""


def whole_runs(
    tables: Iterable[pa.Table],
    starts: Callable[[pa.Table, Rows], np.ndarray],
    path: object,
    field: str,
    what: str,
) -> Iterator[tuple[Rows, pa.Table, np.ndarray]]:
    """Cut a file's rows into batches that end where a run of rows ends.

    A batch of `tables` may end within a run. `starts` gives the first row of each run; `what` is
    what a run is called in messages, such as "page". Yields the place of a batch in the file, its
    rows, and the first row of each of its runs.
    """
    waiting, rows = None, Rows(path)
    for table in tables:
        table = table if waiting is None else pa.concat_tables([waiting, table])
        at = starts(table, rows)
        if len(table) - at[-1] > LONGEST:
            message = f"{rows.name(at[-1])}: a {what} has more than {LONGEST:,} rows"
            raise InputError(message, path=path, field=field, expected=f"a value per {what}")
        if at[-1]:
            yield rows, table.slice(0, at[-1]), at[:-1]
        waiting, rows = table.slice(at[-1]), Rows(path, rows.before + int(at[-1]))
    if waiting is not None and len(waiting):
        yield rows, waiting, np.array([0])


def value_text(value: pa.Scalar) -> str:
    given = value.as_py()
    return f"{'no value' if given is None else repr(given):.40} was found"


def _numbers(column: pa.Array) -> np.ndarray | None:
    """A column as whole numbers, else numbers, else booleans; None if a value is none of these."""
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            return column.cast(kind).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None

"""Numbers for distinct rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with irregular bits: 2^64 divided by the golden ratio."""
SHIFT = np.uint64(32)


def number_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number distinct rows in the order of their first occurrence.

    Rows are told apart by a hash. If two different rows share one, all columns are compared.

    Args:
        rows: [rows, columns] integers from 0.

    Returns:
        [rows] number of each row; [distinct] where each of them occurs first.

    Example:
        >>> number, first = number_rows(np.array([[1, 2], [3, 4], [1, 2]]))
        >>> number.tolist(), first.tolist()
        ([0, 1, 0], [0, 1])
    """
    mixed = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        mixed ^= column.astype(np.uint64)
        mixed *= FACTOR
        mixed ^= mixed >> SHIFT
    number = pd.factorize(mixed)[0]
    first = first_of(number)
    if not all(np.array_equal(column[first][number], column) for column in rows.T):
        number = np.zeros(len(rows), np.int64)
        for column in rows.T:
            # Numbers stay below that of rows, so that their product with a column's fits in int64.
            symbols, kinds = pd.factorize(column)
            number = pd.factorize(number * len(kinds) + symbols)[0]
        first = first_of(number)
    return number, first


def first_of(number: np.ndarray) -> np.ndarray:
    """Where each number occurs first. Numbers count from 0 in the order of their first occurrence.

    Example:
        >>> first_of(np.array([0, 1, 0, 2, 1])).tolist()
        [0, 1, 3]
    """
    return np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))

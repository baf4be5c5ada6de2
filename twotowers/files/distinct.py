"""Numbers for distinct rows, and for values of any kind."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pandas as pd


def number_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number distinct rows in the order of their first occurrence.

    Args:
        rows: [rows, columns] integers.

    Returns:
        [rows] number of each row; [distinct] where each of them occurs first.

    Example:
        >>> number, first = number_rows(np.array([[1, 2], [3, 4], [1, 2]]))
        >>> number.tolist(), first.tolist()
        ([0, 1, 0], [0, 1])
    """
    table = pd.DataFrame(rows)
    number = table.groupby([*table], sort=False).ngroup().to_numpy()
    return number, first_of(number)


def first_of(number: np.ndarray) -> np.ndarray:
    """Where each number occurs first. Numbers count from 0 in the order of their first occurrence.

    Example:
        >>> first_of(np.array([0, 1, 0, 2, 1])).tolist()
        [0, 1, 3]
    """
    return np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))


def hashed(values: Iterable[bytes]) -> np.ndarray:
    """[values] int64 from 0: a hash of each, the same on every machine.

    63 bits: among 16 million values two share a number with chance 1.4e-5.
    """
    digests = b"".join(hashlib.blake2b(each, digest_size=8).digest() for each in values)
    return (np.frombuffer(digests, "<u8") >> np.uint64(1)).astype(np.int64)

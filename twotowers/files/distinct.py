"""Numbers for distinct rows and for values of any kind, and which came before in a stream."""

import hashlib
from collections.abc import Iterable

import numpy as np
import pandas as pd


def number_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number distinct rows of integers by their first occurrence; and where that is."""
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


class Seen:
    """The numbers that came before, in eight bytes each.

    Example:
        >>> seen = Seen()
        >>> seen.new(np.array([5, 3, 5])).tolist(), seen.new(np.array([3, 4])).tolist()
        ([0, 1], [1])
    """

    def __init__(self):
        # Sorted. The second is small, so that adding to it takes little time.
        self.many, self.few = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def new(self, numbers: np.ndarray) -> np.ndarray:
        """Where numbers stand that did not come before, each once, in order. They are added."""
        values, first = np.unique(numbers, return_index=True)
        fresh = ~(_within(values, self.many) | _within(values, self.few))
        self.few = np.union1d(self.few, values[fresh])
        if len(self.few) > len(self.many) // 8 + 10_000:
            self.many, self.few = np.union1d(self.many, self.few), self.few[:0]
        return np.sort(first[fresh])


def _within(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Whether each value is one of some sorted numbers."""
    place = np.searchsorted(among, values)
    return np.append(among, values[-1:] - 1)[place] == values if len(values) else place > 0

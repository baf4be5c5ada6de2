"""Which numbers came before, in a stream."""

from __future__ import annotations

import numpy as np


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

"""Ids of any kind as numbers from 0, in the order of the ids, and the way back.

Whole numbers are addressed directly: the number of an id is its distance from the lowest. Text, and
whole numbers that are spread too far, are numbered by their rank.
"""

import tempfile
import weakref
from dataclasses import dataclass, field
from os import SEEK_END

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.files.artefacts import disk_space
from twotowers.files.batches import WHOLE
from twotowers.files.columns import is_text

SPREAD = 4
"""Whole numbers are addressed directly if their range is at most so many times their number."""
FEW = 1 << 16
"""... or if it is below this."""


@dataclass(frozen=True, eq=False)
class Ids:
    """What the numbers of a column, which are below `size`, stand for. Not every number need occur.

    `low` is the id of number 0, where ids are whole numbers that are addressed directly; otherwise
    `values` [size] are the sorted ids.
    """

    size: int
    low: int = 0
    values: pa.Array | None = None
    type: pa.DataType = field(default_factory=pa.int64)

    def take(self, numbers: np.ndarray) -> pa.Array:
        """The ids of some numbers."""
        if self.values is not None:
            return self.values.take(pa.array(numbers))
        return pa.array(np.asarray(numbers, np.int64) + self.low).cast(self.type)

    @property
    def highest(self) -> int:
        """The highest id, where they are whole numbers."""
        return int(self.whole(np.array([self.size - 1]))[0])

    def whole(self, numbers: np.ndarray) -> np.ndarray:
        """The ids of some numbers as int64, where they are whole numbers."""
        return self.take(numbers).to_numpy().astype(np.int64, copy=False)


class Spill:
    """Keeps arrays in memory, and from so many bytes on in one temporary file."""

    def __init__(self, memory: int) -> None:
        self.left, self.file = memory, None

    def keep(self, array: np.ndarray) -> np.ndarray:
        """The array, or its copy in the file."""
        self.left -= array.nbytes
        if self.left >= 0 or not len(array):
            return array
        if self.file is None:
            # It has no name, so that nothing is left of it however the process ends.
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 (kept open)
            weakref.finalize(self, self.file.close)
        with disk_space(tempfile.gettempdir(), "space, or TMPDIR in another place"):
            start = self.file.seek(0, SEEK_END)
            self.file.write(memoryview(array).cast("B"))
            self.file.flush()
        return np.memmap(self.file, array.dtype, "r+", start, array.shape)


class Column:
    """Numbers the values of a column that comes in parts.

    `texts`: whether text stands for whole numbers, if all of it could, as in a csv file.
    """

    def __init__(self, spill: Spill, texts: bool = False) -> None:
        self.spill, self.texts, self.type = spill, texts, None
        self.parts: list[np.ndarray] = []
        self._own: list[pa.Array | None] = []

    def append(self, values: pa.ChunkedArray) -> None:
        """The next part."""
        self.type, own = values.type, None
        if pa.types.is_integer(values.type):
            low, high = (end.as_py() or 0 for end in pc.min_max(values).values())
            if low >= -(2**31) and high < 2**31:
                parts = [np.zeros(0, np.int32), *(each.to_numpy() for each in values.chunks)]
                numbers = np.concatenate(parts, dtype=np.int32, casting="unsafe")
            else:
                numbers, own = _numbered(values.to_numpy())
        else:
            encoded = values.dictionary_encode().combine_chunks()
            numbers, own = encoded.indices.to_numpy(), encoded.dictionary
        self.parts.append(self.spill.keep(numbers))
        self._own.append(own)

    def finish(self) -> Ids:
        """The ids, after which `parts` are their numbers."""
        kind = self.type or pa.int64()
        if all(own is None for own in self._own):
            ends = [(int(each.min()), int(each.max())) for each in self.parts if len(each)]
            low = min((one for one, _ in ends), default=0)
            size = max((other for _, other in ends), default=low - 1) - low + 1
            if size <= min(max(SPREAD * sum(map(len, self.parts)), FEW), 2**31):
                for each in self.parts:
                    each -= low
                return Ids(size, low, type=kind)
        for place, own in enumerate(self._own):
            if own is None:
                self.parts[place][:], self._own[place] = _numbered(self.parts[place])
        own = [each.cast(kind) for each in self._own if each is not None]
        values = pa.chunked_array(own, kind).unique()
        if self.texts and is_text(kind) and pc.all(pc.match_substring_regex(values, WHOLE)).as_py():
            own = [each.cast(pa.int64()) for each in own]
            values = values.cast(pa.int64())
        values = values.take(pc.sort_indices(values))
        for place, each in enumerate(own):
            part, rank = self.parts[place], pc.index_in(each, value_set=values).to_numpy()
            if isinstance(part, np.memmap):
                part[:] = rank[part]
            else:  # Arrow's arrays are not written to.
                self.parts[place] = rank[part]
        return Ids(len(values), values=values, type=values.type)


def _numbered(values: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    """Whole numbers, numbered in the order of their first occurrence, and the distinct ones."""
    numbers, distinct = pd.factorize(values)
    return numbers.astype(np.int32), pa.array(distinct)

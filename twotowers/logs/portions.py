"""Splits of a log by its parts: whole parts, the first sessions of them, or a random half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twotowers.errors import InputError, check_choice, check_range
from twotowers.randomness import stream

ORDERS = ("file", "random")


@dataclass(frozen=True)
class Portion:
    """What a split has of a log.

    Attributes:
        parts: names of its parts, as the column `split` of the log has them.
        low, high: the share of these parts' sessions, from `low` to `high` of their order.
        order: 'file', or 'random': shuffled by the seed, so that two portions of the same parts
            divide them at random.
    """

    parts: Sequence[str]
    low: float = 0.0
    high: float = 1.0
    order: str = "file"

    def __post_init__(self):
        check_range(self.low, field="low", low=0, high=1)
        check_range(self.high, field="high", low=self.low, high=1)
        check_choice(self.order, ORDERS, field="order")


def rows_of(
    part: np.ndarray, portions: Mapping[str, Portion], *, seed: int
) -> dict[str, np.ndarray]:
    """The sessions of each split, in the order of the log.

    Args:
        part: [sessions] text, the part of each session.
        portions: of each split. They may overlap.
        seed: of random orders.

    Raises:
        InputError: a part does not exist, or a split would have no session.

    Example:
        >>> log = np.array(["part-0", "part-0", "part-1", "part-1"])
        >>> first = Portion(["part-1"], high=0.5)
        >>> rows_of(log, {"train": first, "test": Portion(["part-0"])}, seed=1)
        {'train': array([2]), 'test': array([0, 1])}
    """
    known, found = set(np.unique(part).tolist()), {}
    for split, portion in portions.items():
        for name in portion.parts:
            check_choice(name, known, field=f"{split}: parts")
        rows = np.flatnonzero(np.isin(part, list(portion.parts)))
        if portion.order == "random":
            rows = stream("portions", seed, *sorted(portion.parts)).permutation(rows)
        start, end = (round(share * len(rows)) for share in (portion.low, portion.high))
        found[split] = np.sort(rows[start:end])
        if not len(found[split]):
            raise InputError(f"{len(rows)} sessions leave none", field=split)
    return found

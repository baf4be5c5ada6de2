"""Users of generated logs: some read from top to bottom, others glance at positions.

Readers stop when satisfied or out of patience, and read on after a click less often. The others
look at positions independently of what they clicked. So none of the ten click models is the one
that clicked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Users:
    """Who clicks: readers, who read from top to bottom, and others, who glance at positions.

    Attributes:
        patience, unsatisfied: chance to read on after no click, and after one that did not satisfy.
        readers: share of sessions that read from top to bottom.
        eta: the others examine position k with chance k^-eta.
    """

    patience: float
    unsatisfied: float
    readers: float
    eta: float


def clicks_of(
    rng: np.random.Generator, attracts: np.ndarray, satisfies: np.ndarray, users: Users
) -> np.ndarray:
    """[pages, K] bool: draw clicks, given P(attractive) and P(satisfied | clicked) of documents."""
    pages, length = attracts.shape
    attracted = rng.random(attracts.shape) < attracts
    satisfied = rng.random(attracts.shape) < satisfies
    patient = rng.random(attracts.shape)
    reader = rng.random(pages) < users.readers
    place = np.arange(1.0, length + 1)
    glanced = rng.random(attracts.shape) < place**-users.eta
    reads, clicks = reader.copy(), np.zeros(attracts.shape, bool)
    for k in range(length):
        clicks[:, k] = attracted[:, k] & np.where(reader, reads, glanced[:, k])
        goes = np.where(
            clicks[:, k],
            ~satisfied[:, k] & (patient[:, k] < users.unsatisfied),
            patient[:, k] < users.patience,
        )
        reads &= goes
    return clicks

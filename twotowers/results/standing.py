"""What a verdict stands on: data that is real, data that is not, or no data at all."""

from __future__ import annotations

from collections.abc import Iterable

SIMULATION = "simulation"
STAND_IN = "stand-in"
UNVERIFIED = "unverified data"
REAL = "real data"

KINDS = {
    SIMULATION: "What the paper itself simulates. It needs no data set.",
    REAL: "The files of the data set, known by checksums that were verified.",
    UNVERIFIED: "Files that the user named. No checksum of them is known.",
    STAND_IN: "Data that was generated in the place of a data set, so that everything runs without "
    "a download. It has no real document, so a verdict on it is no replication on the real set.",
}
"""Each kind of data and what it means, from what can be doubted least to what most."""


def weakest(kinds: Iterable[str]) -> str:
    """The kind that can be doubted most; of nothing, a simulation.

    >>> weakest([SIMULATION, STAND_IN, REAL])
    'stand-in'
    >>> weakest([REAL, SIMULATION])
    'real data'
    >>> weakest([])
    'simulation'
    """
    return max(kinds, key=list(KINDS).index, default=SIMULATION)

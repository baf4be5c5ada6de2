"""The kinds of data that a verdict can stand on."""

from collections.abc import Iterable

SIMULATION = "simulation"
STAND_IN = "stand-in"
UNVERIFIED = "unverified data"
REAL = "real data"

KINDS = {
    SIMULATION: "The paper's own simulation. It needs no data set.",
    REAL: "The files of the data set, verified by their checksums.",
    UNVERIFIED: "Files that the user named. Their checksums are not known.",
    STAND_IN: "Data generated in the place of a data set, so that everything runs without a "
    "download. It has no real document, so a verdict on it is no replication on the real set.",
}
"""Kind of data -> its meaning, from the strongest evidence to the weakest."""


def weakest(kinds: Iterable[str]) -> str:
    """The weakest of some kinds of data, or a simulation if there are none."""
    return max(kinds, key=list(KINDS).index, default=SIMULATION)

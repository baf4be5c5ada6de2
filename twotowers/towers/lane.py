"""Numbers of towers and heads that differ between lanes. No JAX, because the plan imports this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lane:
    """A number of a tower or head that differs between lanes.

    Attributes:
        column: its column in the results, and its key in `varied` of
            `twotowers.fitting.gradient.fit`, which gives the value of each lane.
        values: all of its values, for checks of their range.
    """

    column: str
    values: tuple[float, ...]


KNOWN = "known"
"""Setting of examination: it is that of the simulated user, and not trained."""

"""Parameters that differ between lanes. No JAX, because the plan imports this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lane:
    """A parameter of a method, tower or head that differs between lanes.

    A method, tower or head says in the annotation of a parameter that it may be one, as in
    `dropout: float | Lane`.

    Attributes:
        column: its column in the results, and its key in the values of each lane
            (`twotowers.methods.task.Task.each`, `varied` of `twotowers.fitting.gradient.fit`).
        values: all of its values, for checks of their range.
    """

    column: str
    values: tuple[Any, ...]


KNOWN = "known"
"""Setting of examination: it is that of the simulated user, and not trained."""

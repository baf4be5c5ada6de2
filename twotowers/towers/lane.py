"""A number of a tower or head that is a lane. Needs no JAX, so configurations are read without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lane:
    """A number of a module that differs between lanes.

    Attributes:
        column: of the results, and of `varied` in `twotowers.fitting.gradient.fit`.
        values: all that it takes, for checks; which lane has which, `varied` says.
    """

    column: str
    values: tuple[float, ...]

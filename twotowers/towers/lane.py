"""Numbers of towers and heads that differ between lanes. It needs no JAX, so plans may read it."""

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


KNOWN = "known"
"""Examination as the simulated user has it, which is not trained."""

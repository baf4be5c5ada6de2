"""A log of any class, by where its clicks come from (`from`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from twotowers.experiment.drawn_lists import DrawnLists
from twotowers.experiment.log import Log
from twotowers.experiment.observed import ObservedLog
from twotowers.experiment.own_log import OwnLog
from twotowers.experiment.ranked_lists import RankedLists
from twotowers.experiment.simulated import SimulatedLog


def _kind_of_log(given: Any) -> str:
    """The value of `from`. Given lists are drawn, or ranked where a data set has them."""
    if isinstance(given, Log):
        given = dict(given) | {"from": dict(given)["origin"]}
    origin = given.get("from", "simulation") if isinstance(given, Mapping) else given
    ranked = origin == "lists" and "dataset" in given
    return f"from: {origin}{', of a data set' if ranked else ''}"


AnyLog = Annotated[
    Annotated[SimulatedLog, Tag("from: simulation")]
    | Annotated[ObservedLog, Tag("from: dataset")]
    | Annotated[OwnLog, Tag("from: file")]
    | Annotated[DrawnLists, Tag("from: lists")]
    | Annotated[RankedLists, Tag("from: lists, of a data set")],
    Discriminator(_kind_of_log),
]
"""A log, by where its clicks come from (`from`)."""

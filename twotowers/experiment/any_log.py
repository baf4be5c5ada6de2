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
    return "lists of a data set" if origin == "lists" and "dataset" in given else str(origin)


AnyLog = Annotated[
    Annotated[SimulatedLog, Tag("simulation")]
    | Annotated[ObservedLog, Tag("dataset")]
    | Annotated[OwnLog, Tag("file")]
    | Annotated[DrawnLists, Tag("lists")]
    | Annotated[RankedLists, Tag("lists of a data set")],
    Discriminator(_kind_of_log),
]
"""A log, by where its clicks come from (`from`)."""

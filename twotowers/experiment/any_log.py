"""A log of any class, by where its clicks come from (`from`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from twotowers.experiment.drawn_lists import DrawnLists
from twotowers.experiment.fields import config_error
from twotowers.experiment.log import Log
from twotowers.experiment.observed import ObservedLog
from twotowers.experiment.own_log import OwnLog
from twotowers.experiment.ranked_lists import RankedLists
from twotowers.experiment.simulated import SimulatedLog

LOGS = {
    "simulated": SimulatedLog,
    "observed": ObservedLog,
    "own": OwnLog,
    "drawn": DrawnLists,
    "ranked": RankedLists,
}
ORIGINS = {"simulation": "simulated", "dataset": "observed", "file": "own"}
GIVEN_LISTS = "'lists', which are drawn; or 'dataset', 'policy' and 'contexts'"


def _kind_of_log(given: Any) -> str | None:
    if isinstance(given, Log):
        return next(name for name, kind in LOGS.items() if isinstance(given, kind))
    if not isinstance(given, Mapping):
        return None
    origin = given.get("from", "simulation")
    if origin == "lists":
        return "ranked" if "lists" not in given else "drawn"
    return ORIGINS.get(origin) if isinstance(origin, str) else None


def _known(given: Any) -> Any:
    """Refuse an origin that there is not."""
    kind = _kind_of_log(given)
    if kind is None:
        raise config_error(
            f"{given.get('from') if isinstance(given, Mapping) else given!r} is unknown",
            "one of 'simulation', 'dataset', 'lists', 'file'",
            "from" if isinstance(given, Mapping) else "",
        )
    if kind == "ranked" and isinstance(given, Mapping) and "dataset" not in given:
        raise config_error("'lists' is missing", GIVEN_LISTS)
    return given


AnyLog = Annotated[
    Annotated[SimulatedLog, Tag("simulated")]
    | Annotated[ObservedLog, Tag("observed")]
    | Annotated[OwnLog, Tag("own")]
    | Annotated[DrawnLists, Tag("drawn")]
    | Annotated[RankedLists, Tag("ranked")],
    Discriminator(_kind_of_log),
    BeforeValidator(_known),
]
"""A log, by where its clicks come from (`from`)."""

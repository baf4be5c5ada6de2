"""A log of any class, by where its clicks come from (`from`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from twotowers.experiment.drawn_lists import DrawnLists
from twotowers.experiment.fields import config_error
from twotowers.experiment.log import Log
from twotowers.experiment.observed import ObservedLog
from twotowers.experiment.ranked_lists import RankedLists
from twotowers.experiment.simulated import SimulatedLog

LOGS = {
    "simulated": SimulatedLog,
    "observed": ObservedLog,
    "drawn": DrawnLists,
    "ranked": RankedLists,
}
ORIGINS = {"simulation": "simulated", "dataset": "observed"}
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


def _own_keys(given: Any) -> Any:
    """Refuse a key that belongs to logs of another origin, and say which."""
    kind = _kind_of_log(given)
    if kind is None:
        raise config_error(
            f"{given.get('from') if isinstance(given, Mapping) else given!r} is unknown",
            "one of 'simulation', 'dataset', 'lists'",
            "from" if isinstance(given, Mapping) else "",
        )
    if not isinstance(given, Mapping):
        return given
    if kind == "ranked" and "dataset" not in given:
        raise config_error("'lists' is missing", GIVEN_LISTS)
    for key in given:
        if key in _keys(LOGS[kind]):
            continue
        if kind == "drawn" and key in _keys(RankedLists):
            raise config_error(f"{key!r} does not belong here", GIVEN_LISTS)
        origins = {
            each.model_fields["origin"].default for each in LOGS.values() if key in _keys(each)
        }
        if origins:
            expected = " or ".join(f"'from: {origin}'" for origin in sorted(origins))
            raise config_error(f"a {LOGS[kind].WORDS} has no {key!r}", expected)
    return given


def _keys(kind: type[Log]) -> set[str]:
    return {field.alias or name for name, field in kind.model_fields.items()}


AnyLog = Annotated[
    Annotated[SimulatedLog, Tag("simulated")]
    | Annotated[ObservedLog, Tag("observed")]
    | Annotated[DrawnLists, Tag("drawn")]
    | Annotated[RankedLists, Tag("ranked")],
    Discriminator(_kind_of_log),
    BeforeValidator(_own_keys),
]
"""A log, by where its clicks come from (`from`)."""

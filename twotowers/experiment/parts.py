"""Towers and heads in a configuration: checked before a job starts, built within the job.

A part has a kind, which is the name of its file, and options. Options that its file names in
`LANES` may be lists, which are lanes. Their column is named after the part and the option:
`tower_dropout`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from twotowers.errors import InputError, nearest
from twotowers.experiment.registry import Kind, check_parameters, find, kinds
from twotowers.towers.lane import KNOWN, Lane

TABLE = "table"
"""The kind of an examination part with a parameter per position. It is not a tower."""


def settle_part(
    family: str, given: str | Mapping, name: str, paper: str | None, **where
) -> tuple[str | dict, dict[str, list]]:
    """Check a tower or head, and split off its lanes.

    Args:
        family: "towers" or "heads".
        given: its kind, alone or with options.
        name: of the part. Its columns begin with it.
        paper: the paper whose own parts are included.
        where: path and field, for messages.

    Returns:
        what all lanes share (the kind alone if it has no options), and the lanes.

    Raises:
        InputError: an unknown kind or option, or a list where one value is needed.
    """
    options = with_kind(given)
    kind = find(family, options.pop("kind"), paper, **where)
    check_parameters(kind, options, **where)
    lanes = {}
    for option, value in options.items():
        if isinstance(value, list) and option in kind.lanes:
            lanes[f"{name}_{option}"] = list(value)
        elif isinstance(value, list) and option not in kind.lists:
            raise one_value(f"{option!r} of {name}", value, kind, **where)
    fixed = {key: value for key, value in options.items() if f"{name}_{key}" not in lanes}
    return ({"kind": kind.name, **fixed} if fixed else kind.name), lanes


def settle_examination(
    given: str | Mapping, paper: str | None, **where
) -> tuple[str | dict, dict[str, list]]:
    """Check the examination part: a table, a tower of positions, or what the simulated user has.

    The last is `KNOWN`. Each may have dropout of its logits.

    `dropout` applies to the part's output. Hidden layers may have their own, in `layers`.
    """
    options = with_kind(given)
    dropout = options.pop("dropout", 0.0)
    lanes = {"examination_dropout": dropout} if isinstance(dropout, list) else {}
    if options["kind"] in (TABLE, KNOWN):
        if unknown := [key for key in options if key != "kind"]:
            raise InputError(
                f"{options['kind']!r} has no parameter {unknown[0]!r}",
                expected=nearest(unknown[0], ["dropout"]),
                **where,
            )
        part = options["kind"]
    else:
        known = [name for name, kind in kinds("towers", paper).items() if not kind.reads]
        if options["kind"] not in known:
            raise InputError(
                f"{options['kind']!r} is unknown",
                expected=nearest(str(options["kind"]), [TABLE, KNOWN, *known]),
                **where,
            )
        part, own = settle_part("towers", options, "examination", paper, **where)
        lanes |= own
    if dropout and not isinstance(dropout, list):
        part = {**with_kind(part), "dropout": dropout}
    return part, lanes


def one_value(what: str, value: list, kind: Kind, **where) -> InputError:
    """The error for a list in a place that lanes share."""
    may = ", ".join(kind.lanes) or "none of its own"
    return InputError(
        f"{what} is {value!r}, and cannot differ between lanes of one program",
        expected=f"one value per setting; {kind.name!r} takes lists for {may}",
        **where,
    )


def with_kind(value: str | Mapping) -> dict:
    """The part as a mapping. A name alone is that kind with its defaults."""
    return {"kind": value} if isinstance(value, str) else dict(value)


def name_of(part: str | Mapping) -> str:
    """The kind of a settled part."""
    return with_kind(part)["kind"]


def reads_pairs(tower: str | Mapping, paper: str | None) -> bool:
    """Whether a settled tower has parameters of its own for each query-document pair."""
    return find("towers", name_of(tower), paper).reads == "pairs"


# Within a job. These functions import what they build.


def part_builder(
    family: str,
    part: str | Mapping,
    name: str,
    lanes: Mapping[str, list],
    paper: str | None,
) -> Callable:
    """A function that builds a settled tower or head from its remaining arguments.

    Args:
        family, name, paper: see `settle_part`.
        part: as `settle_part` returns it.
        lanes: values by column, for all parts of the setting.
    """
    options = with_kind(part)
    kind = find(family, options.pop("kind"), paper)
    return partial(kind.load(), **options, **_lanes_of(kind.lanes, name, lanes))


def examination_builder(
    part: str | Mapping, lanes: Mapping[str, list], paper: str | None
) -> dict[str, object]:
    """The examination arguments of `twotowers.models.towers.two_towers`: tower and dropout."""
    options = with_kind(part)
    fixed = {"dropout": options.pop("dropout", 0.0)}
    fixed |= _lanes_of(["dropout"], "examination", lanes)
    if options["kind"] in (TABLE, KNOWN):
        return {"examination": None if options["kind"] == TABLE else KNOWN, **fixed}
    own = {column: values for column, values in lanes.items() if column != "examination_dropout"}
    return {"examination": part_builder("towers", options, "examination", own, paper), **fixed}


def _lanes_of(options, name: str, lanes: Mapping[str, list]) -> dict[str, object]:
    columns = {option: f"{name}_{option}" for option in options if f"{name}_{option}" in lanes}
    return {option: Lane(column, tuple(lanes[column])) for option, column in columns.items()}

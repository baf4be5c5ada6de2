"""Towers and heads as a configuration has them: settled before a job starts, made within it.

A part is a kind, found by its file, and options. Options that its file names in `LANES` may be
lists, which are lanes; their column is the part's name and the option's, as in `tower_dropout`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from twotowers.errors import InputError, nearest
from twotowers.running.registry import Kind, check_parameters, find, kinds
from twotowers.towers.lane import Lane

TABLE = "table"
"""Examination by a parameter per position, the part that is no tower."""


def settle_part(
    family: str, given: str | Mapping, name: str, paper: str | None, **where
) -> tuple[str | dict, dict[str, list]]:
    """A tower or head, checked.

    Args:
        family: "towers" or "heads".
        given: its kind, alone or with options.
        name: of the part, with which its columns begin.
        paper: whose own are included.
        where: path and field, for messages.

    Returns:
        what does not differ between lanes (the kind alone if it is all there is), and the lanes.

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
    """The examination part, checked: a table or a tower of positions, and dropout of its logits.

    Its `dropout` is of the part's output; hidden layers may have their own, in `layers`.
    """
    options = with_kind(given)
    dropout = options.pop("dropout", 0.0)
    lanes = {"examination_dropout": dropout} if isinstance(dropout, list) else {}
    if options["kind"] == TABLE:
        if unknown := [key for key in options if key != "kind"]:
            raise InputError(
                f"{TABLE!r} has no parameter {unknown[0]!r}",
                expected=nearest(unknown[0], ["dropout"]),
                **where,
            )
        part = TABLE
    else:
        known = [name for name in kinds("towers", paper) if name != "embedding"]
        if options["kind"] not in known:
            raise InputError(
                f"{options['kind']!r} is unknown",
                expected=nearest(str(options["kind"]), [TABLE, *known]),
                **where,
            )
        part, own = settle_part("towers", options, "examination", paper, **where)
        lanes |= own
    if dropout and not isinstance(dropout, list):
        part = {**with_kind(part), "dropout": dropout}
    return part, lanes


def one_value(what: str, value: list, kind: Kind, **where) -> InputError:
    """The error of a list where lanes cannot differ."""
    may = ", ".join(kind.lanes) or "none of its own"
    return InputError(
        f"{what} is {value!r}, and cannot differ between lanes of one program",
        expected=f"one value of it per setting; of {kind.name!r} lists are for {may}",
        **where,
    )


def with_kind(value: str | Mapping) -> dict:
    """A name alone stands for that kind with its defaults."""
    return {"kind": value} if isinstance(value, str) else dict(value)


def name_of(part: str | Mapping) -> str:
    """The kind of a settled part."""
    return with_kind(part)["kind"]


# Within a job; these import what they make.


def part_builder(
    family: str,
    part: str | Mapping,
    name: str,
    lanes: Mapping[str, list],
    paper: str | None,
) -> Callable:
    """What makes a settled tower or head, of what it is made of besides its options.

    Args:
        family, name, paper: as in `settle_part`.
        part: as settled.
        lanes: from the columns of the setting's parts to their values.
    """
    options = with_kind(part)
    kind = find(family, options.pop("kind"), paper)
    return partial(kind.load(), **options, **_lanes_of(kind.lanes, name, lanes))


def examination_builder(
    part: str | Mapping, lanes: Mapping[str, list], paper: str | None
) -> dict[str, object]:
    """What `twotowers.models.towers.two_towers` is told of examination: the tower and dropout."""
    options = with_kind(part)
    fixed = {"dropout": options.pop("dropout", 0.0)}
    fixed |= _lanes_of(["dropout"], "examination", lanes)
    if options["kind"] == TABLE:
        return {"examination": None, **fixed}
    own = {column: values for column, values in lanes.items() if column != "examination_dropout"}
    return {"examination": part_builder("towers", options, "examination", own, paper), **fixed}


def _lanes_of(options, name: str, lanes: Mapping[str, list]) -> dict[str, object]:
    columns = {option: f"{name}_{option}" for option in options if f"{name}_{option}" in lanes}
    return {option: Lane(column, tuple(lanes[column])) for option, column in columns.items()}

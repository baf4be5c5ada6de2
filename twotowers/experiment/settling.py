"""Settings and items of an experiment, completed: defaults filled in, lanes listed.

A list of values makes lanes. These may be lists: what `settling_logs` names, the parameters of a
method, tower or head that its file names, and the numbers of a training. All of it is checked here,
before a job starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from twotowers import SPLITS
from twotowers.errors import InputError, nearest
from twotowers.experiment.parts import (
    TABLE,
    name_of,
    one_value,
    reads_pairs,
    settle_examination,
    settle_part,
    with_kind,
)
from twotowers.experiment.registry import MADE_BY, Kind, check_parameters, find
from twotowers.experiment.settling_logs import (
    DATASET,
    SIMULATION,
    check_lanes,
    check_numbers,
    listed,
    need_pages,
    queries_of,
)

MODEL = {"kind": "additive", "tower": None, "features": 1.0, "examination": TABLE}
"""The keys of a model besides its constants, with their defaults."""
METHOD = "likelihood"
TRANSFER = "twotowers.jobs.transfer"
"""The module that ranks test queries by trees, if a setting asks for it."""
STUDY = ("module", "dataset", "raw", "ranker", "seeds")
"""What a study says besides the parameters of its module."""


def settle_setting(
    name: str, setting: dict, logs: dict, training: Mapping, *, path: Path, paper: str
) -> dict:
    """A setting with its defaults and its lanes.

    Args:
        name: of the setting.
        setting: as in experiment.yaml.
        logs: the settled logs.
        training: the experiment's, by name.
        path, paper: the experiment that the setting belongs to.

    Returns:
        The setting with `model` (kind, tower, features, examination, constants), `method` (kind
        and what all lanes share), `lanes` ("log" and "method", perhaps "parts" and "training",
        each with the values of its columns) and the name of its `training`.
    """
    where = {"path": path, "field": f"settings.{name}.model"}
    model = {**MODEL, **setting["model"]}
    kind = find("models", model["kind"], paper, **where)
    if kind.pages:
        need_pages(logs[setting["log"]], f"model {kind.name!r}", path, where["field"])
    constants = {key: value for key, value in model.items() if key not in MODEL}
    check_parameters(kind, constants, **where)
    check_numbers(constants, path, where["field"])
    for key, value in constants.items():
        if isinstance(value, list):
            raise InputError(
                f"{key!r} of a fitted model cannot differ between lanes",
                expected="one value; a setting of its own for each other value", **where,
            )  # fmt: skip
    field = where.pop("field")
    model["tower"], parts = settle_part(
        "towers", model["tower"], "tower", paper, field=f"{field}.tower", **where
    )
    model["examination"], lanes = settle_examination(
        model["examination"], paper, field=f"{field}.examination", **where
    )
    parts |= lanes
    _check_tower(model["tower"], logs[setting["log"]], path, name, paper)
    where = {"path": path, "field": f"settings.{name}.method"}
    method = with_kind(setting.get("method", METHOD))
    kind = find("methods", method["kind"], paper, **where)
    given = {key: value for key, value in method.items() if key != "kind"}
    check_parameters(kind, given, **where)
    heads = {}
    for head, options in dict(given.get("heads") or {}).items():
        place = {"path": path, "field": f"settings.{name}.method.heads.{head}"}
        heads[head], lanes = settle_part("heads", {"kind": head, **options}, head, paper, **place)
        parts |= lanes
    if heads:
        method["heads"] = heads
    _check_measures(setting, logs[setting["log"]], kind, model["tower"], path, name, paper)
    _check_factors(setting, logs[setting["log"]], kind, path, name)
    own = name_of(model["tower"]) if kind.trains else None
    trained = setting.get("training", own)
    varied = {
        key: list(value)
        for key, value in training.get(trained, {}).items()
        if isinstance(value, list)
    }
    if not kind.trains:
        _refuse_parts(kind, model, [*parts, *varied], path, name)
    lanes = {
        "method": _method_lanes(kind, given, where),
        "log": _selected(
            setting.get("lanes", {}), setting["log"], logs[setting["log"]]["lanes"], path, name
        ),
    }
    lanes |= {part: own for part, own in [("parts", parts), ("training", varied)] if own}
    columns = [column for own in lanes.values() for column in own]
    if twice := {column for column in columns if columns.count(column) > 1}:
        raise InputError(
            f"columns {sorted(twice)} are lanes more than once", path=path,
            field=f"settings.{name}",
            expected="each column in one of log, model, method and training",
        )  # fmt: skip
    for own in lanes.values():
        check_lanes(own, path, f"settings.{name}")
    fixed = {key: value for key, value in method.items() if key not in lanes["method"]}
    return {**setting, "model": model, "method": fixed, "lanes": lanes, "training": trained}


def _check_measures(
    setting: Mapping, log: Mapping, method: Kind, tower, path: Path, name: str, paper: str
) -> None:
    """Raise InputError for what a setting measures besides and has nothing to measure it by."""
    simulated, ranked = log.get("from") != DATASET, "contexts" in log
    if "transfer" in setting and not ranked:
        raise InputError(
            "there are no test queries to rank", path=path, field=f"settings.{name}.transfer",
            expected="a log with 'from: lists' that a ranker sorts",
        )  # fmt: skip
    has = {
        **dict.fromkeys(("validation", "ties", "queries"), (simulated, "a simulated log")),
        # A document has one label on all lists, or one on each.
        "recovery": (simulated and not ranked, "a simulated log, not lists that a ranker sorts"),
        "places": (ranked, "lists that a ranker sorts"),
        "epochs": (method.trains, "a method that trains by epochs"),
        "uncertainty": (reads_pairs(tower, paper), "a tower with a parameter per pair"),
    }
    for measure in setting.get("measure", []):
        possible, needed = has[measure]
        if not possible:
            raise InputError(
                f"{measure!r} cannot be measured", path=path, field=f"settings.{name}.measure",
                expected=needed,
            )  # fmt: skip


def _check_factors(setting: Mapping, log: Mapping, method: Kind, path: Path, name: str) -> None:
    """Raise InputError for a method that takes positions for bias factors where they are not."""
    chosen = setting.get("lanes", {}).get("repair", log.get("repairs", {}))
    merged = [repair for repair in chosen if "merge" in log.get("repairs", {}).get(repair, {})]
    if (merged or "contexts" in log) and not method.factors:
        raise InputError(
            f"method {method.name!r} takes positions for bias factors", path=path,
            field=f"settings.{name}.method",
            expected="'alternation', or lanes of a log without merging and contexts",
        )  # fmt: skip


def _refuse_parts(kind: Kind, model: Mapping, varied: list, path: Path, name: str) -> None:
    """Raise InputError for settings that need a method that trains towers."""
    if varied:
        raise InputError(
            f"{varied[0]!r} cannot differ between lanes of method {kind.name!r}", path=path,
            field=f"settings.{name}", expected="one value per setting",
        )  # fmt: skip
    if model["examination"] != TABLE:
        raise InputError(
            f"method {kind.name!r} has a parameter per position", path=path,
            field=f"settings.{name}.model.examination", expected=repr(TABLE),
        )  # fmt: skip


def _check_tower(tower: str | Mapping, log: dict, path: Path, name: str, paper: str) -> None:
    """Raise InputError if the log lacks what the tower needs."""
    field, by_pair = f"settings.{name}.model.tower", reads_pairs(tower, paper)
    if log.get("from", SIMULATION) != SIMULATION and not by_pair and not log.get("features"):
        raise InputError(
            f"tower {name_of(tower)!r} reads features, and this log has none",
            path=path,
            field=field,
            expected="'embedding': a parameter per query-document pair; or a log with "
            "'features: true'",
        )
    apart = len({queries_of(log, split) for split in SPLITS}) > 1
    if log.get("from") != "dataset" and by_pair and apart:
        raise InputError(
            "an embedding per pair can be measured only on the pairs that it was trained on",
            path=path,
            field=field,
            expected="a log with 'queries: train', whose sessions all ask the training queries",
        )


def check_study(name: str, study: Mapping, *, path: Path, paper: str, root: Path) -> None:
    """Raise InputError for a study without a module, or with parameters that the module has not."""
    where = {"path": path, "field": f"studies.{name}"}
    kind = find("studies", study.get("module", name), paper, root, **where)
    given = {key: value for key, value in study.items() if key not in STUDY}
    check_parameters(kind, given, **where)


def settle_item(name: str, item: dict, *, path: Path, paper: str) -> dict:
    """Fill in an item's drawing. An item that names none has the drawing of its own name.

    Returns:
        The item with `draw`: the drawing's kind and its parameters. A parameter `needs` gets what
        the item needs.
    """
    drawing = with_kind(item.get("draw", name))
    where = {"path": path, "field": f"items.{name}.draw"}
    kind = find("drawings", drawing["kind"], paper, **where)
    if "needs" in kind.parameters:
        drawing = {"needs": item["needs"], **drawing}
    settings = drawing.get("settings", [])
    if not isinstance(settings, list | Mapping):
        raise InputError(
            f"'settings' is {settings!r}", expected="names of settings, with or without titles",
            **where,
        )  # fmt: skip
    for setting in [*settings, *_grouped(drawing)]:
        if setting not in item["needs"]:
            raise InputError(
                f"the item draws {setting!r} and does not need it",
                expected=nearest(setting, item["needs"]), **where,
            )  # fmt: skip
    check_parameters(kind, {key: drawing[key] for key in drawing if key != "kind"}, **where)
    if kind.holds != MADE_BY[item["kind"]]:
        raise InputError(
            f"{kind.name!r} cannot draw a {item['kind']}", expected="a drawing with"
            f" {MADE_BY[item['kind']]!r}, or another kind of item", **where,
        )  # fmt: skip
    return {**item, "draw": drawing}


def _grouped(drawing: Mapping) -> Iterator[str]:
    """The settings of a drawing's groups: panels with curves, or lines with dots."""
    for key in ("panels", "groups"):
        for group in drawing.get(key, {}).values():
            for place in group.values():
                yield place["setting"] if isinstance(place, Mapping) else place


def _method_lanes(kind: Kind, given: Mapping, where: dict) -> dict[str, list]:
    lanes = {}
    for key, default in kind.parameters.items():
        if key in kind.lanes:
            lanes[key] = listed(given[key] if key in given else ast.literal_eval(default))
        elif isinstance(given.get(key), list):
            raise one_value(repr(key), given[key], kind, **where)
    return lanes


def _selected(chosen: Mapping, log: str, lanes: Mapping, path: Path, name: str) -> dict:
    """The lanes of the log that a setting takes: all, unless it selects values of a column."""
    for column, values in chosen.items():
        field = f"settings.{name}.lanes"
        if column not in lanes:
            raise InputError(
                f"log {log!r} has no lanes {column!r}", path=path, field=field,
                expected=nearest(column, lanes) if lanes else "a log with lanes",
            )  # fmt: skip
        for value in values:
            if value not in lanes[column]:
                raise InputError(
                    f"{column} {value} is not one of log {log!r}", path=path,
                    field=f"{field}.{column}", expected=f"some of {lanes[column]}",
                )  # fmt: skip
    return {
        column: [type(values[0])(value) for value in chosen.get(column, values)]
        for column, values in lanes.items()
    }

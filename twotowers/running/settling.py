"""Logs, settings and items of an experiment, completed: defaults filled in, lanes listed.

A list of values makes lanes. These may be lists: a policy's strength and temperature, a log's
sessions, a user's constants, the parameters of a method, tower or head that its file names, and the
numbers of a training. All of it is checked here, before a job starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from twotowers import SPLITS
from twotowers.errors import InputError, check_range, nearest
from twotowers.running.parts import (
    TABLE,
    name_of,
    one_value,
    reads_pairs,
    settle_examination,
    settle_part,
    with_kind,
)
from twotowers.running.registry import MADE_BY, Kind, check_parameters, find

MODEL = {"kind": "additive", "tower": None, "features": 1.0, "examination": TABLE}
"""The keys of a model besides its constants, with their defaults."""
METHOD = "likelihood"
USER = "additive"
USER_LANE = "user_kind"
"""The column that tells users of several kinds apart."""
STUDY = ("module", "dataset", "raw", "ranker", "seeds")
"""What a study says besides the parameters of its module."""
SIMULATION, DATASET, LISTS = "simulation", "dataset", "lists"
"""Where the clicks of a log come from."""
OWN = {
    SIMULATION: ("dataset", "relevance", "policy", "user", "sessions", "queries", "record"),
    DATASET: ("dataset", "split", "features", "bootstrap", "record"),
    LISTS: ("lists", "views", "repairs", "user"),
}
"""The keys of each kind of log, besides `from` and `positions`."""
WORDS = {SIMULATION: "simulated log", DATASET: "real log", LISTS: "log of lists"}


def settle_log(name: str, log: dict, sessions: dict, *, path: Path, paper: str) -> dict:
    """A log with its defaults and its lanes.

    Args:
        name: of the log.
        log: as in experiment.yaml.
        sessions: of the scale, per split.
        path, paper: the experiment that the log belongs to.

    Returns:
        The log with `lanes`: the values of each lane column. A simulated log also has `sessions`
        (a list per split), `ties` and `noise` (of its policy) and `user` (kind and constants,
        which may be lists).
    """
    field, source = f"logs.{name}", log.get("from", SIMULATION)
    if strange := [key for key in log if key not in ("from", "positions", *OWN[source])]:
        others = [f"'from: {other}'" for other, keys in OWN.items() if strange[0] in keys]
        raise InputError(
            f"a {WORDS[source]} has no {strange[0]!r}", path=path, field=field,
            expected=" or ".join(others),
        )  # fmt: skip
    if source == LISTS:
        return _settle_lists(log, path=path, field=field, paper=paper)
    if source == DATASET:
        if not abs(sum(log["split"].values()) - 1) <= 1e-9:
            raise InputError(
                f"the shares {log['split']} do not add up to 1", path=path,
                field=f"{field}.split", expected="a sum of 1",
            )  # fmt: skip
        if log.get("features"):
            _need_pages(log, "a log of documents with features", path, field)
        return {**log, "lanes": {}}
    policy = dict(log["policy"])
    ranker = policy.pop("ranker")
    drawn = {"ties": policy.get("ties", "random"), "noise": policy.get("noise", "once")}
    queries = log.get("queries")
    if drawn["noise"] == "session" and isinstance(queries, Mapping) and "ranked" in queries:
        raise InputError(
            "noise in each session ranks anew each time", path=path, field=f"{field}.queries",
            expected="no 'ranked', or noise that is drawn once",
        )  # fmt: skip
    mixing = "mixing_weight" if "mixing_weight" in policy else "strength"
    if "mixing_weight" in policy and "strength" in policy:
        raise InputError(
            "a policy cannot have both a strength and a mixing weight", path=path,
            field=f"{field}.policy",
            expected="one of 'strength' (-1 to 1) and 'mixing_weight' (0 to 1)",
        )  # fmt: skip
    lanes = {
        mixing: [float(value) for value in listed(policy.get(mixing, 1.0))],
        "temperature": [float(value) for value in listed(policy.get("temperature", 0.0))],
    }
    sessions = {
        split: listed(number) for split, number in (log.get("sessions") or sessions).items()
    }
    lanes |= _budgets(sessions, path, field)
    user = _settle_user(log, path=path, field=f"{field}.user", paper=paper)
    if isinstance(user["kind"], list):
        lanes[USER_LANE] = user["kind"]
    lanes |= {
        key: [float(each) for each in value]
        for key, value in user.items()
        if key != "kind" and isinstance(value, list)
    }
    _check_lanes(lanes, path, field)
    filled = {"ranker": ranker, **drawn, "sessions": sessions, "user": user, "lanes": lanes}
    return {**log, **filled}


def _settle_lists(log: dict, *, path: Path, field: str, paper: str) -> dict:
    """A log of given lists. It asks the same queries in all splits, of one user."""
    user = _settle_user(log, path=path, field=f"{field}.user", paper=paper)
    for key, value in user.items():
        if isinstance(value, list):
            raise InputError(
                f"{key!r} is {value!r}", path=path, field=f"{field}.user", expected="one value"
            )
    lanes = {
        "repair": list(log["repairs"]),
        "views": [float(views) for views in listed(log["views"])],
    }
    _check_lanes(lanes, path, field)
    return {**log, "user": user, "lanes": lanes, "queries": "train"}


def _settle_user(log: Mapping, *, path: Path, field: str, paper: str) -> dict:
    """A log's user: its kind or kinds, and its constants, checked."""
    user = with_kind(log.get("user", USER))
    constants = {key: value for key, value in user.items() if key != "kind"}
    for name in listed(user["kind"]):
        kind = find("models", name, paper, path=path, field=field)
        if kind.pages:
            _need_pages(log, f"user {kind.name!r}", path, field)
        check_parameters(kind, constants, path=path, field=field)
    _check_numbers(constants, path, field)
    return user


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
        _need_pages(logs[setting["log"]], f"model {kind.name!r}", path, where["field"])
    constants = {key: value for key, value in model.items() if key not in MODEL}
    check_parameters(kind, constants, **where)
    _check_numbers(constants, path, where["field"])
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
        _check_lanes(own, path, f"settings.{name}")
    fixed = {key: value for key, value in method.items() if key not in lanes["method"]}
    return {**setting, "model": model, "method": fixed, "lanes": lanes, "training": trained}


def _check_measures(
    setting: Mapping, log: Mapping, method: Kind, tower, path: Path, name: str, paper: str
) -> None:
    """Raise InputError for what a setting measures besides and has nothing to measure it by."""
    simulated = log.get("from") != "dataset"
    has = {
        "validation": (simulated, "a simulated log"),
        "recovery": (simulated, "a simulated log"),
        "queries": (simulated, "a simulated log"),
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


def _need_pages(log: Mapping, what: str, path: Path, field: str) -> None:
    """Raise InputError unless a log keeps what shared a page."""
    if log.get("record") != "sessions":
        raise InputError(
            f"{what} needs the clicks of whole pages", path=path, field=field,
            expected="a log with 'record: sessions'",
        )  # fmt: skip


def _check_lanes(lanes: Mapping[str, list], path: Path, field: str) -> None:
    """Raise InputError for a column without values, or with the same value twice."""
    for column, values in lanes.items():
        if not values or any(value in values[:place] for place, value in enumerate(values)):
            raise InputError(
                f"{column!r} is {values!r}", path=path, field=field,
                expected="one value, or a list of different values",
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


def _check_numbers(constants: Mapping, path: Path, field: str) -> None:
    """Constants of click models are numbers. The model itself checks their range."""
    for key, value in constants.items():
        for number in listed(value):
            check_range(number, field=f"{field}.{key}", low=-1e9, high=1e9, path=path)


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


def listed(value) -> list:
    """A list as it is; any other value as a list of one."""
    return list(value) if isinstance(value, list) else [value]


def _budgets(sessions: Mapping[str, list], path: Path, field: str) -> dict[str, list]:
    """The lanes of several numbers of sessions. Their values are those of the training split."""
    lengths = {split: len(values) for split, values in sessions.items()}
    if set(lengths.values()) <= {1}:
        return {}
    several = [values for values in sessions.values() if len(values) > 1]
    if len({len(values) for values in several}) > 1 or len(sessions.get("train", [0])) == 1:
        raise InputError(
            f"the splits have {lengths} numbers of sessions", path=path,
            field=f"{field}.sessions", expected="lists of one length, or single numbers",
        )  # fmt: skip
    if any(list(values) != sorted(set(values)) for values in several):
        raise InputError(
            "the numbers of sessions do not rise", path=path, field=f"{field}.sessions",
            expected="from few to many: each log contains the smaller ones",
        )  # fmt: skip
    return {"sessions": [float(number) for number in sessions["train"]]}


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


def queries_of(log: Mapping, split: str) -> tuple[str, int | None]:
    """The queries of a split's sessions: the split that they are from, and how many (None: all)."""
    queries = log.get("queries") or {}
    if isinstance(queries, str):
        queries = {"split": queries}
    return queries.get("split", split), queries.get("first")

"""Configuration and experiments: read, checked, and expanded for one scale.

Needs PyYAML and jsonschema only, so that a Snakefile can use it from a lean environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twotowers import LOG, ROOT
from twotowers.datasets.sources import resolve
from twotowers.errors import InputError, nearest
from twotowers.experiment.schemas import validate
from twotowers.experiment.settling import check_study, settle_item, settle_setting
from twotowers.experiment.settling_logs import DATASET, SIMULATION, settle_log
from twotowers.files.yamls import read_yaml
from twotowers.fitting.optimizers import check_training

OPTIONAL = {
    "positions": 10,
    "rankers": {},
    "training": {},
    "towers": {},
    "logs": {},
    "settings": {},
    "studies": {},
}
"""Optional keys of an experiment, with their defaults."""

COLUMNS = ("setting", "model", "method", "components", "seed", "metric", "position", "epoch")
"""Columns of fits, besides lanes, by which a drawing may choose rows."""

OVERRIDDEN = ("rankers", "training", "towers", "logs", "settings", "studies")
"""Sections with entries that a scale may override."""


@dataclass(frozen=True)
class Experiment:
    """One paper's experiment at one scale.

    Attributes:
        key: the paper's folder name.
        title, citation, positions: as in its experiment.yaml.
        datasets: how each data set is prepared. `replace` is applied to the names.
        seeds: one job per setting or study and seed.
        sessions: simulated sessions per split.
        rankers, training: named training settings, with the scale's overrides applied.
        logs, settings, items: completed by `twotowers.experiment.settling` and `settling_logs`.
        studies: as in its experiment.yaml, with `replace` applied to the data set.
    """

    key: str
    title: str
    citation: str
    datasets: dict[str, dict]
    positions: int
    seeds: list[int]
    sessions: dict[str, int]
    rankers: dict[str, dict]
    training: dict[str, dict]
    logs: dict[str, dict]
    settings: dict[str, dict]
    studies: dict[str, dict]
    items: dict[str, dict]

    @property
    def needs(self) -> list[str]:
        """The names of all settings, then of all studies."""
        return [*self.settings, *self.studies]

    def seeds_of(self, need: str) -> list[int]:
        """The seeds of a setting or study."""
        own = self.studies.get(need) or self.settings.get(need, {})
        return own.get("seeds", self.seeds)


def check_config(config: dict, path: str | Path = "config.yaml") -> dict:
    """Return `config` if it follows config/schema.yaml.

    Raises:
        InputError: an unknown key (the nearest valid one is offered), a wrong type or value.
    """
    validate(config, "schema.yaml", path)
    for name in [*config["replace"], *config["replace"].values()]:
        if name not in config["datasets"]:
            raise InputError(
                f"{name!r} is unknown",
                path=path,
                field="replace",
                expected=nearest(name, config["datasets"]),
            )
    return config


def load_experiment(paper: str, config: dict, root: Path = ROOT) -> Experiment:
    """Read papers/<paper>/experiment.yaml and settle it for the configured scale.

    Raises:
        InputError: the paper is unknown, or its experiment refers to something undeclared.
    """
    known = [path.parent.name for path in (root / "papers").glob("*/experiment.yaml")]
    if paper not in known:
        raise InputError(f"{paper!r} is unknown", field="papers", expected=nearest(paper, known))
    path = root / "papers" / paper / "experiment.yaml"
    raw = read_yaml(path)
    validate(raw, "experiment.schema.yaml", path)
    raw = OPTIONAL | raw
    # Entries that share a YAML alias are one object. Each name needs a copy of its own.
    for section in OVERRIDDEN:
        raw[section] = {name: dict(entry) for name, entry in raw[section].items()}
    scale = raw["scales"][config["scale"]]
    for section in OVERRIDDEN:
        for name, changes in scale.get(section, {}).items():
            _reference(name, raw[section], path, f"scales.{config['scale']}.{section}")
            raw[section][name] |= changes
    # The overrides of the scale must be valid, too.
    validate(raw, "experiment.schema.yaml", path)
    del raw["scales"]
    for section in ("rankers", "training"):
        for name, training in raw[section].items():
            check_training(training, path=path, field=f"{section}.{name}")
    replace = {name: config["replace"].get(name, name) for name in raw["datasets"]}
    raw["datasets"] = _replaced(raw["datasets"], replace, config["datasets"], path)
    for section in ("logs", "studies"):
        for name, user in raw[section].items():
            if "dataset" in user:
                _reference(user["dataset"], replace, path, f"{section}.{name}.dataset")
                user["dataset"] = replace[user["dataset"]]
            ranker = user.get("policy", user).get("ranker", "expert")
            if ranker != "expert":  # the expert needs no training
                place = "policy.ranker" if "policy" in user else "ranker"
                _reference(ranker, raw["rankers"], path, f"{section}.{name}.{place}")
    _check_sources(raw["logs"], config["datasets"], path)
    for name in scale.get("datasets", ()):
        _reference(name, replace, path, f"scales.{config['scale']}.datasets")
    # A data set that a configuration puts in place of another is always fitted.
    chosen = scale.get("datasets", replace)
    datasets = [new for name, new in replace.items() if name in chosen or new != name]
    sessions = scale.get("sessions", {})
    for name, log in raw["logs"].items():
        if log.get("from", SIMULATION) == SIMULATION and not (sessions or "sessions" in log):
            raise InputError(
                "'sessions' is missing",
                path=path,
                field=f"scales.{config['scale']}",
                expected="sessions per split, since there are simulated logs",
            )
        raw["logs"][name] = settle_log(name, log, sessions, path=path, paper=paper)
    for name, study in raw["studies"].items():
        check_study(name, study, path=path, paper=paper, root=root)
    towers = raw.pop("towers")
    for name, setting in raw["settings"].items():
        tower = setting["model"]["tower"]
        if isinstance(tower, str) and tower in towers:
            setting["model"] = {**setting["model"], "tower": towers[tower]}
        _reference(setting["log"], raw["logs"], path, f"settings.{name}.log")
        settled = settle_setting(
            name, setting, raw["logs"], raw["training"], path=path, paper=paper
        )
        raw["settings"][name] = settled
        own = "training" if "training" in setting else "model.tower"
        if settled["training"] is not None:
            _reference(settled["training"], raw["training"], path, f"settings.{name}.{own}")
    for name, item in raw["items"].items():
        for need in item["needs"]:
            known = {**raw["settings"], **raw["studies"]}
            _reference(need, known, path, f"items.{name}.needs")
        raw["items"][name] = settle_item(name, item, path=path, paper=paper)
        _check_columns(name, raw["items"][name], raw["settings"], path)
    keep_of_scale(raw, config["scale"], datasets)
    return Experiment(
        key=paper,
        **raw,
        seeds=scale["seeds"],
        sessions=scale.get("sessions", {}),
    )


def keep_of_scale(raw: dict, scale: str, datasets: Sequence[str]) -> None:
    """Take out what a scale does not make.

    It makes no setting on the log of a data set outside `datasets`. It makes no item of other
    scales, and none that has nothing left to draw. What only such items need goes with them.
    """
    items, logs = raw["items"], raw["logs"]
    absent = {
        name
        for name, setting in raw["settings"].items()
        if logs[setting["log"]].get("dataset") not in (None, *datasets)
    }
    raw["items"] = {
        name: left
        for name, item in items.items()
        if scale in item.get("scales", [scale]) and (left := _without(item, absent))["needs"]
    }
    needed = {need for item in raw["items"].values() for need in item["needs"]}
    elsewhere = {need for item in items.values() for need in item["needs"]} - needed
    for section in ("settings", "studies"):
        raw[section] = {
            name: entry for name, entry in raw[section].items() if name not in elsewhere | absent
        }


def _without(item: dict, absent: set[str]) -> dict:
    """Take settings out of an item and out of its drawing."""
    item = {**item, "needs": [name for name in item["needs"] if name not in absent]}
    if isinstance(item.get("draw"), Mapping):
        item["draw"] = draw = dict(item["draw"])
        for key in draw.keys() & {"needs", "settings"}:
            kept = [name for name in draw[key] if name not in absent]
            titles = draw[key] if isinstance(draw[key], Mapping) else None
            draw[key] = {name: titles[name] for name in kept} if titles else kept
    return item


def _replaced(datasets: dict, replace: dict[str, str], known, path: Path) -> dict[str, dict]:
    """How each data set is prepared, after `replace`."""
    used = {}
    for name, steps in datasets.items():
        _reference(replace[name], known, path, "datasets")
        if used.setdefault(replace[name], steps) != steps:
            raise InputError(
                f"{replace[name]!r} replaces two data sets that are prepared differently",
                path=path,
                field=f"datasets.{name}",
                expected="another data set in the configuration's 'replace'",
            )
    return used


def _check_sources(logs: dict[str, dict], datasets: dict, path: Path) -> None:
    """Raise InputError unless real logs are data sets of clicks, and simulated ones of rankings."""
    logs = {name: log for name, log in logs.items() if "dataset" in log}
    names = dict.fromkeys(log["dataset"] for log in logs.values())
    is_log = {name: LOG in resolve(datasets[name]["source"]).splits for name in names}
    kinds = {True: "a click log", False: "rankings with labels"}
    for name, log in logs.items():
        wanted = log.get("from") == DATASET
        if is_log[log["dataset"]] != wanted:
            raise InputError(
                f"data set {log['dataset']!r} is {kinds[not wanted]}",
                path=path,
                field=f"logs.{name}.dataset",
                expected=f"{kinds[wanted]}; 'replace' in the configuration may name one",
            )


def _check_columns(name: str, item: dict, settings: dict[str, dict], path: Path) -> None:
    """Raise InputError if a drawing names a column that the results do not have."""
    where = item["draw"].get("where") or {}
    if not isinstance(where, Mapping):
        raise InputError(
            f"{where!r} does not choose rows",
            path=path,
            field=f"items.{name}.draw.where",
            expected="columns and their values",
        )
    if not settings.keys() >= set(item["needs"]):
        return  # The columns of a study are not known here.
    lanes = [settings[need]["lanes"] for need in item["needs"]]
    known = {*COLUMNS, *(column for own in lanes for part in own.values() for column in part)}
    named = [(column, "where") for column in where]
    named += [(item["draw"][key], key) for key in ("along", "curves") if key in item["draw"]]
    for column, key in named:
        if column not in known:
            raise InputError(
                f"there is no column {column!r}",
                path=path,
                field=f"items.{name}.draw.{key}",
                expected=nearest(str(column), known),
            )


def _reference(name: str, known, path: Path, field: str) -> None:
    if name not in known:
        raise InputError(
            f"{name!r} is not declared", path=path, field=field, expected=nearest(name, known)
        )

"""Configuration and experiments as data: read, checked, and expanded for one scale.

Needs PyYAML and jsonschema only, so that a Snakefile can use it from a lean environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twotowers import LOG, ROOT
from twotowers.datasets.sources import resolve
from twotowers.errors import InputError, nearest
from twotowers.files.yamls import read_yaml
from twotowers.fitting.optimizers import check_training
from twotowers.running.schemas import validate
from twotowers.running.settling import settle_item, settle_log, settle_setting

OPTIONAL = {
    "positions": 10,
    "rankers": {},
    "training": {},
    "logs": {},
    "settings": {},
    "studies": {},
}
"""What an experiment may leave out."""

COLUMNS = ("setting", "model", "method", "seed", "metric", "position")
"""What a drawing may choose rows of fits by, besides their lanes."""

OVERRIDDEN = ("rankers", "training", "logs", "studies")
"""What a scale may override, by name."""


@dataclass(frozen=True)
class Experiment:
    """One paper's experiment at one scale.

    Attributes:
        key: the paper's folder name.
        title, citation, positions: as in its experiment.yaml.
        datasets: how each data set is prepared, by the name of the one used (see `replace`).
        seeds: one job per setting or study and seed.
        sessions: simulated sessions per split.
        rankers, training: named training settings, with the scale's overrides applied.
        logs, settings, items: completed; see `twotowers.running.settling`.
        studies: as in its experiment.yaml; the data set is filled in.
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
        """All that items can be drawn from: settings, then studies."""
        return [*self.settings, *self.studies]

    def seeds_of(self, need: str) -> list[int]:
        """The seeds of a setting or study."""
        return self.studies.get(need, {}).get("seeds", self.seeds)


def check_config(config: dict, path: str | Path = "config.yaml") -> dict:
    """Return `config` if it follows config/schema.yaml, else say what is wrong and where.

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
    # YAML's aliases are one object, and what is filled in is one name's own.
    for section in (*OVERRIDDEN, "settings"):
        raw[section] = {name: dict(entry) for name, entry in raw[section].items()}
    scale = raw["scales"][config["scale"]]
    for section in OVERRIDDEN:
        for name, changes in scale.get(section, {}).items():
            _reference(name, raw[section], path, f"scales.{config['scale']}.{section}")
            raw[section][name] |= changes
    # Once more: what a scale overrides must be valid too.
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
            if ranker != "expert":  # which needs no training
                place = "policy.ranker" if "policy" in user else "ranker"
                _reference(ranker, raw["rankers"], path, f"{section}.{name}.{place}")
    _check_sources(raw["logs"], config["datasets"], path)
    sessions = scale.get("sessions", {})
    for name, log in raw["logs"].items():
        if log.get("from") != "dataset" and not (sessions or "sessions" in log):
            raise InputError(
                "'sessions' is missing",
                path=path,
                field=f"scales.{config['scale']}",
                expected="sessions per split, since there are simulated logs",
            )
        raw["logs"][name] = settle_log(name, log, sessions, path=path, paper=paper)
    for name, setting in raw["settings"].items():
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
    return Experiment(
        key=paper,
        **raw,
        seeds=scale["seeds"],
        sessions=scale.get("sessions", {}),
    )


def seed_range(seeds: Sequence[int]) -> str:
    """Seeds as a reader says them: 2021–2023 where they follow each other, else a list."""
    seeds = list(seeds)
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}–{seeds[-1]}"
    return ", ".join(map(str, seeds))


def _replaced(datasets: dict, replace: dict[str, str], known, path: Path) -> dict[str, dict]:
    """How each data set is prepared, by the name of the one used."""
    used = {}
    for name, steps in datasets.items():
        _reference(replace[name], known, path, "datasets")
        if used.setdefault(replace[name], steps) != steps:
            raise InputError(
                f"{replace[name]!r} stands for two data sets that are prepared differently",
                path=path,
                field=f"datasets.{name}",
                expected="another one in the configuration's 'replace'",
            )
    return used


def _check_sources(logs: dict[str, dict], datasets: dict, path: Path) -> None:
    """Raise InputError unless real logs are data sets of clicks, and simulated ones of rankings."""
    names = dict.fromkeys(log["dataset"] for log in logs.values())
    is_log = {name: LOG in resolve(datasets[name]["source"]).splits for name in names}
    kinds = {True: "a click log", False: "rankings with labels"}
    for name, log in logs.items():
        wanted = log.get("from") == "dataset"
        if is_log[log["dataset"]] != wanted:
            raise InputError(
                f"data set {log['dataset']!r} is {kinds[not wanted]}",
                path=path,
                field=f"logs.{name}.dataset",
                expected=f"{kinds[wanted]}; 'replace' of the configuration may name another",
            )


def _check_columns(name: str, item: dict, settings: dict[str, dict], path: Path) -> None:
    """Raise InputError where a drawing chooses rows by a column that the results have not."""
    where = item["draw"].get("where") or {}
    if not isinstance(where, Mapping):
        raise InputError(
            f"{where!r} is no choice of rows",
            path=path,
            field=f"items.{name}.draw.where",
            expected="columns and their values",
        )
    if not settings.keys() >= set(item["needs"]):
        return  # A study's columns are its own.
    lanes = [settings[need]["lanes"] for need in item["needs"]]
    known = {*COLUMNS, *(column for own in lanes for part in own.values() for column in part)}
    for column in where:
        if column not in known:
            raise InputError(
                f"there is no column {column!r}",
                path=path,
                field=f"items.{name}.draw.where",
                expected=nearest(str(column), known),
            )


def _reference(name: str, known, path: Path, field: str) -> None:
    if name not in known:
        raise InputError(
            f"{name!r} is not declared", path=path, field=field, expected=nearest(name, known)
        )

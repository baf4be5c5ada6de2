"""Configuration and experiments as data: read, checked, and expanded for one scale.

Needs PyYAML and jsonschema only, so that a Snakefile can use it from a lean environment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jsonschema
import yaml

from twotowers import ROOT
from twotowers.errors import InputError, nearest

OPTIONAL = {
    "positions": 10,
    "rankers": {},
    "training": {},
    "logs": {},
    "settings": {},
    "studies": {},
}
"""What an experiment may leave out."""

MOST_VALUES = 100_000


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
        logs, settings, studies, items: as in its experiment.yaml; the data set, strengths
            and weightings are filled in.
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

    def seeds_of(self, need: str) -> list[int]:
        """The seeds of a setting or study."""
        return self.studies.get(need, {}).get("seeds", self.seeds)


def check_config(config: dict, path: str | Path = "config.yaml") -> dict:
    """Return `config` if it follows config/schema.yaml, else say what is wrong and where.

    Raises:
        InputError: an unknown key (the nearest valid one is offered), a wrong type or value.
    """
    _validate(config, ROOT / "config" / "schema.yaml", path)
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
    _validate(raw, ROOT / "config" / "experiment.schema.yaml", path)
    raw = OPTIONAL | raw
    # YAML's aliases are one object, and what is filled in is one name's own.
    for section in ("training", "logs", "settings", "studies"):
        raw[section] = {name: dict(entry) for name, entry in raw[section].items()}
    scale = raw["scales"][config["scale"]]
    for section in ("training", "studies"):
        for name, changes in scale.get(section, {}).items():
            _reference(name, raw[section], path, f"scales.{config['scale']}.{section}")
            raw[section][name] |= changes
    # Once more: what a scale overrides must be valid too.
    _validate(raw, ROOT / "config" / "experiment.schema.yaml", path)
    del raw["scales"]
    replace = {name: config["replace"].get(name, name) for name in raw["datasets"]}
    raw["datasets"] = _replaced(raw["datasets"], replace, config["datasets"], path)
    for section in ("logs", "studies"):
        for name, user in raw[section].items():
            if "dataset" in user:
                _reference(user["dataset"], replace, path, f"{section}.{name}.dataset")
                user["dataset"] = replace[user["dataset"]]
            if user.get("ranker", "expert") != "expert":  # which needs no training
                _reference(user["ranker"], raw["rankers"], path, f"{section}.{name}.ranker")
    if raw["logs"] and "sessions" not in scale:
        raise InputError(
            "'sessions' is missing",
            path=path,
            field=f"scales.{config['scale']}",
            expected="sessions per split, since there are logs",
        )
    for name, setting in raw["settings"].items():
        _reference(setting["log"], raw["logs"], path, f"settings.{name}.log")
        own = "training" if "training" in setting else "tower"
        training = setting.setdefault("training", setting["tower"])
        _reference(training, raw["training"], path, f"settings.{name}.{own}")
        log = raw["logs"][setting["log"]]
        setting.setdefault("strengths", log["strengths"])
        setting.setdefault("weightings", ["none"])
        for strength in setting["strengths"]:
            if strength not in log["strengths"]:
                raise InputError(
                    f"strength {strength} is not one of log {setting['log']!r}",
                    path=path,
                    field=f"settings.{name}.strengths",
                    expected=f"some of {log['strengths']}",
                )
    for name, item in raw["items"].items():
        for need in item["needs"]:
            known = {**raw["settings"], **raw["studies"]}
            _reference(need, known, path, f"items.{name}.needs")
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


def read_yaml(path: str | Path) -> dict:
    """The mapping in a YAML file; tags that build objects are refused.

    Raises:
        InputError: the file is not YAML, not a mapping, has a key that is no text, or grows
            beyond MOST_VALUES once its aliases are written out.
    """
    text = Path(path).read_bytes()
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", error)
        raise InputError(
            f"not YAML: {str(problem)[:200]}", path=path, line=mark.line + 1 if mark else None
        ) from error
    except RecursionError:
        raise InputError("not YAML: nested too deeply", path=path) from None
    if not isinstance(content, dict):
        raise InputError(f"holds a {type(content).__name__}", path=path, expected="a mapping")
    if _values(content, {}, path) > MOST_VALUES:
        raise InputError(
            "has aliases that go round in circles, or multiply",
            path=path,
            expected=f"at most {MOST_VALUES:,} values with aliases written out",
        )
    return content


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, whose every complaint is a YAMLError with a line."""

    def construct_object(self, node, deep=False):
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise yaml.constructor.ConstructorError(
                None, None, f"{str(node.value)[:40]!r} is no {node.tag}", node.start_mark
            ) from error

    def flatten_mapping(self, node):
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:
            raise yaml.constructor.ConstructorError(
                None, None, "merged keys multiply", node.start_mark
            )


def _values(content, known: dict[int, float], path: str | Path) -> float:
    """How many values there are with aliases written out; infinite where one holds itself."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        known[id(content)] = math.inf
        inner = content
        if isinstance(content, dict):
            for key in content:
                if not isinstance(key, str):
                    raise InputError(f"the key {str(key)[:40]} is not text", path=path)
            inner = content.values()
        known[id(content)] = 1 + sum(_values(each, known, path) for each in inner)
    return known[id(content)]


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


def _reference(name: str, known, path: Path, field: str) -> None:
    if name not in known:
        raise InputError(
            f"{name!r} is not declared", path=path, field=field, expected=nearest(name, known)
        )


@cache
def _validator(schema: Path) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(read_yaml(schema))


def _validate(content: dict, schema: Path, path: str | Path) -> None:
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(content))
    if error is None:
        return
    field = ".".join(map(str, error.absolute_path)) or None
    if error.validator == "additionalProperties" and error.schema.get("properties"):
        valid = error.schema["properties"]
        unknown = next(key for key in error.instance if key not in valid)
        raise InputError(
            f"unknown setting {unknown!r}", path=path, field=field, expected=nearest(unknown, valid)
        )
    expected = {
        "enum": lambda: f"one of {', '.join(map(repr, error.validator_value))}",
        "minimum": lambda: f"at least {error.validator_value}",
        "maximum": lambda: f"at most {error.validator_value}",
        "type": lambda: f"a value of type {error.validator_value}",
    }.get(error.validator)
    raise InputError(error.message, path=path, field=field, expected=expected and expected())

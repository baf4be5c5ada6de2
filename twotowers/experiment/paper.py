"""A paper's experiment.yaml: read, checked, and settled for one scale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from twotowers.errors import InputError, nearest
from twotowers.experiment.config import RunConfig
from twotowers.experiment.drawn_lists import DrawnLists
from twotowers.experiment.fields import (
    Config,
    Distinct,
    Listed,
    Positive,
    Seeds,
    config_error,
    declare,
    read,
)
from twotowers.experiment.items import Item, Study
from twotowers.experiment.log import Log
from twotowers.experiment.matrix import expanded, name_products, wrong_at
from twotowers.experiment.observed import ObservedLog
from twotowers.experiment.own_log import OwnLog
from twotowers.experiment.parts import Tower
from twotowers.experiment.ranked_lists import RankedLists
from twotowers.experiment.settings import Setting
from twotowers.experiment.simulated import Sessions, SimulatedLog
from twotowers.experiment.training import Ranker, Training
from twotowers.files.yamls import line_of, read_yaml
from twotowers.logs.opening import FORMATS
from twotowers.root import ROOT
from twotowers.splits import LOG

OVERRIDDEN = ("rankers", "training", "towers", "logs", "settings", "studies", "items")
"""Sections with entries that a scale may override. Each may name entries of those before it, so
`PaperFile` has them in this order (`declare` and `named` of `twotowers.experiment.fields`)."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
NAMES = "a name of a letter, then letters, digits, '.', '_' or '-'"
NAMED = {"logs": "name", "settings": "name", "studies": "study", "items": "name"}
"""Sections whose entries have their name as a key, and this key."""


class Preparation(Config):
    """How a data set is prepared; see `twotowers.datasets.preprocess`. A click log is not."""

    prepare: Literal["top_labels", "ultra", "stratified"] | None = None
    """The kind of preparation."""
    top: Positive | None = None
    """Of top_labels: documents with the highest labels to keep per query."""
    most: Positive | None = None
    """Of stratified: documents that a list keeps at most; the shares of labels stay."""
    log1p: bool | None = None
    """Of stratified: whether features are transformed by the signed log1p; true if absent."""
    percentiles: Literal["documents", "places"] | None = None
    """Of top_labels: what the percentiles count that scale synthetic relevance: documents (if
    absent), or all places of lists padded to `top`, empty ones as documents of zero features."""
    log10: bool | None = None
    """Of ultra: log10(1 + x) before scaling."""

    @model_validator(mode="after")
    def _has_length(self) -> Preparation:
        for kind, length in {"top_labels": "top", "stratified": "most"}.items():
            if self.prepare == kind and getattr(self, length) is None:
                raise config_error(f"{length!r} is missing")
        return self

    @property
    def steps(self) -> dict[str, Any]:
        """What is given, for the job that prepares."""
        return self.model_dump(exclude_none=True)


Overrides = Annotated[
    dict[str, dict[str, Any]], Field(default={}, description="Overrides of their keys.")
]


class AtScale(Config):
    """Values at one scale."""

    seeds: Seeds
    """One job per setting or study and seed."""
    sessions: Sessions | None = None
    """Simulated sessions per split."""
    datasets: Annotated[Distinct[str], Field(min_length=1)] | None = None
    """Data sets whose logs are fitted, besides those that a configuration replaces; all if absent.
    An item then shows the settings that are left."""
    rankers: Overrides
    training: Overrides
    towers: Overrides
    logs: Overrides
    settings: Overrides
    studies: Overrides
    items: Overrides


class Scales(Config):
    """Values that differ between scales."""

    smoke: AtScale
    """A first look."""
    laptop: AtScale
    """The default."""
    paper: AtScale
    """What comes closest to the paper's own sizes."""


def _kind_of_log(given: Mapping) -> str:
    """The value of `from`. Given lists are drawn, or ranked where a data set has them."""
    origin = given.get("from", "simulation")
    ranked = origin == "lists" and "dataset" in given
    return f"from: {origin}{', of a data set' if ranked else ''}"


AnyLog = Annotated[
    Annotated[SimulatedLog, Tag("from: simulation")]
    | Annotated[ObservedLog, Tag("from: dataset")]
    | Annotated[OwnLog, Tag("from: file")]
    | Annotated[DrawnLists, Tag("from: lists")]
    | Annotated[RankedLists, Tag("from: lists, of a data set")],
    Discriminator(_kind_of_log),
]
"""A log of any kind. Its key `from` says where clicks come from."""


class Brief(Config):
    """What a reader of the page should know within a minute, a sentence each. Ours are the
    verdicts."""

    question: str
    """What the paper asks."""
    authors: str
    """What its authors answer."""
    doubt: str
    """What to trust least here, and why."""
    claims: Annotated[Distinct[str], Field(min_length=1)]
    """The claims that decide the question. The page shows their verdicts as our answer."""


class PaperFile(Config):
    """What papers/<key>/experiment.yaml holds."""

    title: str
    """The paper's title."""
    citation: str
    """How to cite it."""
    brief: Brief | None = None
    """Question and answers, at the top of its page."""
    datasets: dict[str, Preparation]
    """The data sets, by their names in config.yaml, and how each is prepared."""
    positions: Positive = 10
    """Positions on a result page."""
    scales: Scales
    """Values that differ between scales."""
    rankers: Annotated[dict[str, Ranker], declare("rankers")] = Field(default={})
    """Training of the logging policy's ranker, by name."""
    training: Annotated[dict[str, Training], declare("training")] = Field(default={})
    """Training of the two-tower models, by tower, or by a name that settings refer to."""
    towers: Annotated[dict[str, Tower], declare("towers")] = Field(default={})
    """Relevance towers that settings may name."""
    logs: Annotated[dict[str, AnyLog], declare("logs")] = Field(default={})
    """Click logs by name, simulated or real."""
    settings: Annotated[dict[str, Setting], declare("settings")] = Field(default={})
    """Fits by name; each is one job per seed, with all its lanes. With `matrix`, values by key, an
    entry stands for all combinations; its name has the keys in braces."""
    studies: Annotated[dict[str, Study], declare("studies")] = Field(default={})
    """Experiments that fit no log."""
    items: dict[str, Item]
    """Tables and figures as printed, in the order of the page."""


Entries = Annotated[dict[str, dict[str, Any]], Field(default={})]


class _WithNeeds(Config):
    model_config = ConfigDict(extra="allow")
    needs: Listed[str]


class Outline(Config):
    """What a file must have before names and scales are filled in; `PaperFile` checks the rest."""

    model_config = ConfigDict(extra="allow")

    datasets: dict[str, dict[str, Any]]
    scales: Scales
    rankers: Entries
    training: Entries
    towers: Annotated[dict[str, Any], Field(default={})]
    logs: Entries
    settings: Entries
    studies: Entries
    items: dict[str, _WithNeeds]


class Paper(PaperFile):
    """One paper's experiment at one scale: with the settings, studies and items of that scale."""

    key: str
    """The paper's folder name."""
    seeds: Seeds
    """One job per setting or study and seed."""
    least: int = 1
    """How many seeds the configuration asks for."""
    root: Path = ROOT
    """The folder that holds papers/."""

    @property
    def needs(self) -> list[str]:
        """The names of all settings, then of all studies."""
        return [*self.settings, *self.studies]

    def need(self, name: str) -> Setting | Study:
        """The setting or study of a name."""
        return self.settings.get(name) or self.studies[name]

    def seeds_of(self, need: str) -> list[int]:
        """The seeds of a setting or study; more, if it has several and the run asks for more."""
        seeds = list(self.need(need).seeds or self.seeds)
        more = self.least - len(seeds) if len(seeds) > 1 else 0
        return [*seeds, *range(seeds[-1] + 1, seeds[-1] + 1 + more)]

    def datasets_of(self, need: str) -> list[str]:
        """The data sets behind a setting or study."""
        needed = self.need(need)
        if isinstance(needed, Setting):
            return needed.log.datasets
        return [needed.dataset] if needed.dataset else []


def load_paper(key: str, config: RunConfig, root: Path = ROOT) -> Paper:
    """Read papers/<key>/experiment.yaml, and settle it for the configured scale."""
    known = [path.parent.name for path in (root / "papers").glob("*/experiment.yaml")]
    if key not in known:
        raise InputError(f"{key!r} is unknown", field="papers", expected=nearest(key, known))
    path = root / "papers" / key / "experiment.yaml"
    raw = read_yaml(path)
    read(Outline, raw, path=path)
    name_products(raw, path)
    raw["settings"] = expanded(raw.get("settings", {}), path)
    scale, needed = config.scale, _needed(raw)
    _overridden(raw, scale, path, least=config.seeds or 1)
    _named(raw, path)
    replace = _replacements(raw, config, path)
    _completed(raw["logs"], raw.get("positions", 10), raw["scales"][scale].get("sessions"))
    line = partial(_line, path, raw, scale)
    file = read(PaperFile, raw, path=path, context={"paper": key, "root": root}, line=line)
    own = getattr(file.scales, scale)
    _check_sources(file.logs, config, path)
    for name in own.datasets or ():
        if name not in replace:
            raise _undeclared(name, replace, path, "scales", scale, "datasets")
    # A data set that a configuration puts in place of another is always fitted.
    fitted = [
        new
        for old, new in replace.items()
        if own.datasets is None or old in own.datasets or new != old
    ]
    named = [name.split("/") for name in config.only + config.also]
    asked = {item for paper, item in named if paper == key}
    settings, studies, items = _of_scale(file, scale, fitted, needed, asked)
    made: dict[str, Any] = {"settings": settings, "studies": studies, "items": items}
    made |= {"key": key, "seeds": own.seeds, "least": config.seeds or 1, "root": root}
    return Paper.model_construct(**dict(file) | made)


def _undeclared(name: Any, known: Iterable[str], path: Path, *keys: str) -> InputError:
    expected = nearest(str(name), known)
    return wrong_at(path, *keys, message=f"{name!r} is not declared", expected=expected)


def _line(path: Path, raw: Mapping, scale: str, keys: Sequence) -> int | None:
    """The line of a key: of the scale's value, where the scale has one in its place."""
    if len(keys) > 2 and keys[0] in OVERRIDDEN:
        section, name, key = keys[:3]
        if key in raw["scales"][scale].get(section, {}).get(name, {}):
            keys = ["scales", scale, *keys]
    return line_of(path, keys)


def _needed(raw: Mapping) -> set[str]:
    """What items need at any scale, before one scale's values are put in place of others."""
    sections = [raw["items"], *(scale.get("items", {}) for scale in raw["scales"].values())]
    needs = [item.get("needs", ()) for items in sections for item in items.values()]
    return {str(need) for each in needs if isinstance(each, list) for need in each}


def _overridden(raw: dict, scale: str, path: Path, *, least: int) -> None:
    """Put a scale's values in place of the experiment's, but for fewer seeds than the least."""
    for section in OVERRIDDEN:
        # Entries that share a YAML alias are one object. Each name needs a copy of its own.
        raw[section] = entries = {
            name: dict(entry) if isinstance(entry, Mapping) else {"kind": entry}
            for name, entry in raw.get(section, {}).items()
        }
        for name, change in raw["scales"][scale].get(section, {}).items():
            if name not in entries:
                raise _undeclared(name, entries, path, "scales", scale, section, name)
            seeds = change.get("seeds")
            fewer = isinstance(seeds, list) and len(seeds) < least
            entries[name] |= {
                key: value for key, value in change.items() if not (fewer and key == "seeds")
            }


def _named(raw: Mapping, path: Path) -> None:
    """Give entries their names, which are parts of paths, and targets of a page's links."""
    for section, own in NAMED.items():
        for name, entry in raw[section].items():
            if not NAME.fullmatch(name):
                message = f"{name!r} is not allowed"
                raise wrong_at(path, section, name, message=message, expected=NAMES)
            if own in entry:
                message, expected = f"unknown setting {own!r}", "no name but the entry's"
                raise wrong_at(path, section, name, own, message=message, expected=expected)
            entry[own] = name


def _completed(logs: Mapping[str, dict], positions: Any, sessions: Any) -> None:
    """A log has the paper's number of positions, and a simulated one the sessions of the scale, if
    it has none of its own."""
    for log in logs.values():
        log.setdefault("positions", positions)
        if sessions and log.get("from", "simulation") == "simulation":
            log.setdefault("sessions", sessions)


def _replacements(raw: dict, config: RunConfig, path: Path) -> dict[str, str]:
    """What stands for each data set, put in its place in data sets, logs and studies."""
    datasets = raw["datasets"]
    replace = {name: config.replace.get(name, name) for name in datasets}
    used = {}
    for name, steps in datasets.items():
        if replace[name] not in config.datasets:
            raise _undeclared(replace[name], config.datasets, path, "datasets", name)
        if used.setdefault(replace[name], steps) != steps:
            message = f"{replace[name]!r} replaces two data sets that are prepared differently"
            expected = "another data set in the configuration's 'replace'"
            raise wrong_at(path, "datasets", name, message=message, expected=expected)
    raw["datasets"] = used
    for section in ("logs", "studies"):
        for name, entry in raw[section].items():
            dataset = entry.get("dataset")
            if isinstance(dataset, str):
                if dataset not in replace:
                    raise _undeclared(dataset, replace, path, section, name, "dataset")
                entry["dataset"] = replace[dataset]
    return replace


def _check_sources(logs: Mapping[str, Log], config: RunConfig, path: Path) -> None:
    """Raise InputError unless real logs are data sets of clicks, and simulated ones of rankings."""
    words = {True: "a click log", False: "rankings with labels"}
    for name, log in logs.items():
        for dataset in log.datasets:
            source, wanted = config.datasets[dataset].of, not log.SIMULATED
            if (LOG in source.splits) != wanted:
                message = f"data set {dataset!r} is {words[not wanted]}"
                expected = f"{words[wanted]}; 'replace' in the configuration may name one"
            elif wanted and (source.format not in FORMATS or FORMATS[source.format].counted):
                message = f"{dataset!r} of format {source.format!r} has no pages"
                expected = "a log of pages; 'from: file' also takes counts"
            else:
                continue
            raise wrong_at(path, "logs", name, "dataset", message=message, expected=expected)


def _of_scale(
    file: PaperFile, scale: str, datasets: list[str], needed: set[str], asked: set[str]
) -> tuple[dict, dict, dict]:
    """Settings, studies and items that a scale makes.

    It makes no setting on the log of a data set outside `datasets`. It makes no item of other
    scales that is not `asked` for, and none that has nothing left to draw. What is `needed` by
    items, but by none that is made, goes with them.
    """
    absent = {
        name
        for name, setting in file.settings.items()
        if not set(setting.log.datasets) <= set(datasets)
    }
    items = {
        name: item.without(absent)
        for name, item in file.items.items()
        if (item.scales is None or scale in item.scales or name in asked)
        and not absent >= set(item.needs)
    }
    gone = needed - {need for item in items.values() for need in item.needs} | absent
    settings = {name: each for name, each in file.settings.items() if name not in gone}
    studies = {name: each for name, each in file.studies.items() if name not in gone}
    return settings, studies, items

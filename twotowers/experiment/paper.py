"""A paper's experiment.yaml: read, checked, and settled for one scale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo, model_validator

from twotowers.errors import InputError, nearest
from twotowers.experiment.config import RunConfig
from twotowers.experiment.drawn_lists import DrawnLists
from twotowers.experiment.fields import (
    Config,
    Distinct,
    Positive,
    Seeds,
    config_error,
    declare,
    read,
)
from twotowers.experiment.items import Item
from twotowers.experiment.log import Log
from twotowers.experiment.matrix import expanded, name_products, wrong_at
from twotowers.experiment.observed import ObservedLog
from twotowers.experiment.own_log import OwnLog
from twotowers.experiment.parts import Tower
from twotowers.experiment.ranked_lists import RankedLists
from twotowers.experiment.settings import Setting
from twotowers.experiment.simulated import Sessions, SimulatedLog
from twotowers.experiment.studies import Study
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
"""Names of entries are parts of paths, and targets of a page's links."""


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


def _each(given: Any, own: str, **more: Any) -> Any:
    """The entries of a section, each with its name as the key `own`, and more keys for it to have
    if it does not say."""
    if not isinstance(given, Mapping):
        return given
    for name, entry in given.items():
        if not NAME.fullmatch(str(name)):
            raise config_error(f"{name!r} is not allowed", NAMES, str(name))
        if isinstance(entry, Mapping) and own in entry:
            raise config_error(
                f"unknown setting {own!r}", "no name but the entry's", f"{name}.{own}"
            )
    return {
        name: {own: name, **more, **entry} if isinstance(entry, Mapping) else entry
        for name, entry in given.items()
    }


def _kind_of_log(given: Any) -> str:
    """The value of `from`. Given lists are drawn, or ranked where a data set has them."""
    if isinstance(given, Log):
        given = dict(given) | {"from": dict(given)["origin"]}
    origin = given.get("from", "simulation") if isinstance(given, Mapping) else given
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


def _logs(given: Any, info: ValidationInfo) -> Any:
    """A log has the paper's number of positions, and a simulated one the sessions of the scale, if
    it has none of its own."""
    logs = _each(given, "name", positions=info.data.get("positions", 10))
    sessions = (info.context or {}).get("sessions")
    for log in logs.values() if sessions and isinstance(logs, Mapping) else ():
        if isinstance(log, dict) and log.get("from", "simulation") == "simulation":
            log.setdefault("sessions", sessions)
    return logs


Named = BeforeValidator(partial(_each, own="name"))


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
    rankers: Annotated[dict[str, Ranker], declare("rankers")] = Field(
        default={}, validate_default=True
    )
    """Training of the logging policy's ranker, by name."""
    training: Annotated[dict[str, Training], declare("training")] = Field(
        default={}, validate_default=True
    )
    """Training of the two-tower models, by tower, or by a name that settings refer to."""
    towers: Annotated[dict[str, Tower], declare("towers")] = Field(
        default={}, validate_default=True
    )
    """Relevance towers that settings may name."""
    logs: Annotated[dict[str, AnyLog], BeforeValidator(_logs), declare("logs")] = Field(
        default={}, validate_default=True
    )
    """Click logs by name, simulated or real."""
    settings: Annotated[dict[str, Setting], Named, declare("settings")] = Field(
        default={}, validate_default=True
    )
    """Fits by name; each is one job per seed, with all its lanes. With `matrix`, values by key, an
    entry stands for all combinations; its name has the keys in braces."""
    studies: Annotated[
        dict[str, Study], BeforeValidator(partial(_each, own="study")), declare("studies")
    ] = Field(default={}, validate_default=True)
    """Experiments that fit no log."""
    items: Annotated[dict[str, Item], Named]
    """Tables and figures as printed, in the order of the page."""


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
    if "settings" in raw and isinstance(raw["settings"], Mapping):
        name_products(raw, path)
        raw["settings"] = expanded(raw["settings"], path)
    scale, needed = config.scale, _needed(raw)
    _overridden(raw, scale, path, least=config.seeds or 1)
    replace = _replacements(raw, config, path)
    at = _inner(raw, ["scales", scale])
    context = {"paper": key, "root": root, "sessions": _inner(at, ["sessions"])}
    line = partial(_line, path, raw, scale)
    file = read(PaperFile, raw, path=path, context=context, line=line)
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


def _inner(content: Any, keys: Sequence[str]) -> Any:
    """The value of nested keys; None where there is none."""
    for key in keys:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def _line(path: Path, raw: Mapping, scale: str, keys: Sequence) -> int | None:
    """The line of a key: of the scale's value, where the scale has one in its place."""
    own = ["scales", scale, *keys]
    overridden = len(keys) > 2 and _inner(raw, own[:5]) is not None
    return line_of(path, own if overridden else keys)


def _needed(raw: dict) -> set[str]:
    """What items need at any scale, before one scale's values are put in place of others."""
    places = [["items"], *(["scales", scale, "items"] for scale in Scales.model_fields)]
    sections = [_inner(raw, place) for place in places]
    entries = [entry for each in sections if isinstance(each, Mapping) for entry in each.values()]
    needs = [_inner(entry, ["needs"]) for entry in entries]
    return {str(need) for each in needs if isinstance(each, list) for need in each}


def _overridden(raw: dict, scale: str, path: Path, *, least: int) -> None:
    """Put a scale's values in place of the experiment's, but for fewer seeds than the least."""
    for section in OVERRIDDEN:
        entries, changes = raw.get(section, {}), _inner(raw, ["scales", scale, section])
        if not isinstance(entries, Mapping):
            continue  # Validation refuses what is no mapping.
        # Entries that share a YAML alias are one object. Each name needs a copy of its own.
        entries = {
            name: dict(entry) if isinstance(entry, Mapping) else entry
            for name, entry in entries.items()
        }
        for name, change in changes.items() if isinstance(changes, Mapping) else ():
            if name not in entries:
                raise _undeclared(name, entries, path, "scales", scale, section, name)
            if isinstance(change, Mapping) and isinstance(entries[name], dict):
                seeds = change.get("seeds")
                fewer = isinstance(seeds, list) and len(seeds) < least
                entries[name] |= {
                    key: value for key, value in change.items() if not (fewer and key == "seeds")
                }
        if section in raw:
            raw[section] = entries


def _replacements(raw: dict, config: RunConfig, path: Path) -> dict[str, str]:
    """What stands for each data set, put in its place in data sets, logs and studies."""
    datasets = raw.get("datasets")
    if not isinstance(datasets, Mapping):
        return {}  # which validation refuses
    replace = {name: config.replace.get(name, name) for name in datasets}
    used = {}
    for name, steps in datasets.items():
        if replace[name] not in config.datasets:
            raise _undeclared(replace[name], config.datasets, path, "datasets", name)
        if used.setdefault(replace[name], steps) != steps:
            raise wrong_at(
                path,
                "datasets",
                name,
                message=f"{replace[name]!r} replaces two data sets that are prepared differently",
                expected="another data set in the configuration's 'replace'",
            )
    raw["datasets"] = used
    for section in ("logs", "studies"):
        entries = raw.get(section)
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            if isinstance(entry, dict) and isinstance(entry.get("dataset"), str):
                dataset = entry["dataset"]
                if dataset not in replace:
                    raise _undeclared(dataset, replace, path, section, name, "dataset")
                entry["dataset"] = replace[dataset]
    return replace


def _check_sources(logs: Mapping[str, Log], config: RunConfig, path: Path) -> None:
    """Raise InputError unless real logs are data sets of clicks, and simulated ones of rankings."""
    words = {True: "a click log", False: "rankings with labels"}
    for name, log in logs.items():
        for dataset in log.datasets:
            wanted = not log.SIMULATED
            if (LOG in config.datasets[dataset].of.splits) != wanted:
                raise wrong_at(
                    path,
                    "logs",
                    name,
                    "dataset",
                    message=f"data set {dataset!r} is {words[not wanted]}",
                    expected=f"{words[wanted]}; 'replace' in the configuration may name one",
                )
            form = config.datasets[dataset].of.format
            if wanted and (form not in FORMATS or FORMATS[form].counted):
                raise wrong_at(
                    path,
                    "logs",
                    name,
                    "dataset",
                    message=f"{dataset!r} of format {form!r} has no pages",
                    expected="a log of pages; 'from: file' also takes counts",
                )


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

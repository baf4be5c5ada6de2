"""Where the numbers of items, claims and pages came from, and what of them is recorded."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twotowers.claims.data_provenance import REAL, STAND_IN, UNVERIFIED, weakest
from twotowers.datasets.sources import LETOR
from twotowers.experiment.objects import dumped, shown
from twotowers.files.yamls import read_yaml
from twotowers.report.words import seed_range
from twotowers.workflow.dataset_jobs import standin_file, standin_of

if TYPE_CHECKING:
    from twotowers.workflow.planning import Planner


SETTINGS = (
    *("datasets", "positions", "scales", "rankers", "towers", "training", "logs", "settings"),
    "studies",
)
"""What of an experiment decides its verdicts."""
SCRIPTS = tuple(
    f"scripts/{name}.py"
    for name in (
        *("generate_standin", "preprocess", "train_policy", "simulate_clicks", "fit_setting"),
        *("run_study", "judge_claims"),
    )
)
"""The scripts behind a verdict."""


def kind_of_data(plan: Planner, dataset: str) -> str:
    """What a data set is: a stand-in, or files, which are real where checksums say so.

    The job that finds the files verifies every checksum that is known.
    """
    if plan.dataset(dataset).is_standin:
        return STAND_IN
    return REAL if all(plan.dataset(dataset).of.files_sha256.values()) else UNVERIFIED


def needs_data(plan: Planner, paper: str) -> dict[str, str]:
    """What each setting and study of a paper reads: a kind of data, or only a simulation."""
    return {
        need: weakest(kind_of_data(plan, name) for name in plan.datasets_of(paper, [need]))
        for need in plan.papers[paper].needs
    }


NAMING = ("settings", "panels", "groups", "lines")
"""Options of drawings that name settings."""
NOTES = {STAND_IN: "generated stand-in for", REAL: "real", UNVERIFIED: "unverified"}
"""The words before the name of a data set, for each kind of data."""


def source_note(plan: Planner, paper: str, item: str) -> str:
    """Data, scale and seeds of an item, in one line."""
    needs = plan.papers[paper].items[item].needs
    data = [f"{NOTES[kind_of_data(plan, name)]} {name}" for name in plan.datasets_of(paper, needs)]
    scale, seeds = plan.config.scale, seed_range(_seeds(plan, paper, needs))
    return f"Data: {', '.join(data) or 'simulated'}. Scale: {scale}. Seeds: {seeds}."


def page_paper(plan: Planner, key: str) -> dict:
    """What the page of a paper shows besides results: texts, data sets, seeds, items, needs.

    `key` is the paper. Paths, of claims, gates, items and recorded verdicts, are relative to the
    project.
    """
    paper = plan.papers[key]
    return {
        "key": key,
        "title": paper.title,
        "citation": paper.citation,
        "brief": paper.brief and paper.brief.model_dump(),
        **{kind: plan.file(kind, paper=key) for kind in ("claims", "gates", "findings")},
        **(origin := _origin(plan, key, paper.needs)),
        "replaced": {
            old: new for old, new in plan.config.replace.items() if new in origin["datasets"]
        },
        "items": {name: _page_item(plan, key, name) for name in paper.items},
        "needs": {name: _page_need(plan, key, name) for name in paper.needs},
        "digest": evidence_digest(plan, key),
        "recorded": plan.sources(f"papers/{key}/recorded/*.csv"),
    }


def _page_item(plan: Planner, paper: str, name: str) -> dict:
    item = plan.papers[paper].items[name]
    return {
        **{
            word: getattr(item, word)
            for word in ("title", "caption", "compared", "expected", "kind")
        },
        "needs": list(item.needs),
        "highlight": item.highlight,
        "headings": _headings(item.parameters),
        "names": {
            "metric": _values(item.parameters, "metric"),
            "setting": _values(item.parameters, "setting")
            | _names(item.parameters, set(item.needs)),
        },
        "files": plan.item_files(paper, name),
        **_origin(plan, paper, item.needs),
    }


def _headings(parameters: Mapping[str, Any]) -> dict[str, str]:
    """The heading of the column along the x axis: the label of the axis, without its remarks."""
    if "xlabel" not in parameters:
        return {}
    return {parameters.get("along", "amount"): parameters["xlabel"].partition(" (")[0]}


def _values(options: Mapping[str, Any], column: str) -> dict[str, str]:
    """The names of a column's values that are the rows, columns, curves or panels of a drawing."""
    given = [options.get(name) for name in ("rows", "columns", "by", "col")]
    given.append({"metric": options.get("metrics")})
    names = [each.get(column) for each in given if isinstance(each, Mapping)]
    return {key: text for each in names if isinstance(each, Mapping) for key, text in each.items()}


def _names(options: Mapping[str, Any], settings: set[str]) -> dict[str, str]:
    """The name that a drawing gives to each setting; those with several names are left out."""
    names: dict[str, set[str]] = {}
    for option in NAMING:
        for setting, name in _named(options.get(option), settings):
            names.setdefault(setting, set()).add(name)
    return {setting: own.pop() for setting, own in names.items() if len(own) == 1}


def _named(option: Any, settings: set[str], *groups: str) -> Iterator[tuple[str, str]]:
    """Pairs of setting and name in an option: {setting: name} or {name: setting}, also nested."""
    for key, value in option.items() if isinstance(option, Mapping) else ():
        if key in settings and isinstance(value, str):
            yield key, ", ".join([*groups, value])
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one in settings:
                yield one, ", ".join([*groups, str(key)])
        yield from _named(value, settings, *groups, str(key))


def _page_need(plan: Planner, paper: str, name: str) -> dict:
    """A setting with its whole log and training, or a study, as it is run."""
    need = plan.papers[paper].need(name)
    said = shown(dumped(need)).items()
    return {
        "kind": type(need).__name__.lower(),
        "parameters": {key: value for key, value in said if key not in ("name", "study")},
        "logs": [
            plan.record("fit", paper=paper, setting=name, seed=seed)
            for _, seed in plan.runs(paper, [name])
        ],
        **_origin(plan, paper, [name]),
    }


def _seeds(plan: Planner, paper: str, needs: Iterable[str]) -> list[int]:
    """Seeds behind the given settings and studies."""
    return sorted({seed for _, seed in plan.runs(paper, list(needs))})


def _origin(plan: Planner, paper: str, needs: Iterable[str]) -> dict:
    """Data sets and their kinds, and seeds, behind settings and studies."""
    needs = list(needs)
    return {
        "datasets": {name: kind_of_data(plan, name) for name in plan.datasets_of(paper, needs)},
        "seeds": _seeds(plan, paper, needs),
    }


def evidence_digest(plan: Planner, paper: str) -> str:
    """A digest of all code and settings behind a paper's verdicts, the same at every scale."""
    folder = plan.root / "papers" / paper
    raw = read_yaml(folder / "experiment.yaml")
    settings = {name: raw[name] for name in SETTINGS if name in raw}
    # Models and methods are named in settings, by their files; these two where none is named.
    named = {*re.findall(r"\w+", json.dumps(settings)), "additive", "likelihood"}
    kinds = [
        path
        for place in ("models", "methods", "towers", "rankers")
        for path in (plan.root / "twotowers" / place).glob("*.py")
        if path.stem in named
    ]
    judges = {folder / "findings.py", *folder.glob("items/*.py")}
    own = [path for path in folder.rglob("*.py") if path not in judges]
    datasets = {name: plan.dataset(name) for name in settings.get("datasets", {})}
    standins = [standin_of(name, dataset) for name, dataset in datasets.items()]
    makers = {standin_file(standin) for standin in standins if standin}
    if any(dataset.encoder for dataset in datasets.values()):
        makers.add("scripts/encode.py")
    # Records on real data are of rankings.
    if any(dataset.of.format == LETOR for dataset in datasets.values()):
        makers.add("twotowers/datasets/letor.py")
    behind = plan.code(*SCRIPTS, *sorted(makers), *sorted([*kinds, *own]))
    text = json.dumps([behind, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Where the numbers of items, claims, pages and the crate came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twotowers.report.words import seed_range
from twotowers.results.standing import REAL, STAND_IN, UNVERIFIED, weakest
from twotowers.workflow.plan import Plan


def kind_of_data(plan: Plan, dataset: str) -> str:
    """What a data set is: a stand-in, or files, which are real where checksums say so.

    The job that finds the files verifies every checksum that is known.
    """
    if plan.is_standin(dataset):
        return STAND_IN
    return REAL if all(plan.source(dataset).files_sha256.values()) else UNVERIFIED


def needs_data(plan: Plan, paper: str) -> dict[str, str]:
    """What each setting and study of a paper reads: a kind of data, or only a simulation."""
    return {
        need: weakest(kind_of_data(plan, name) for name in plan.used_datasets(paper, [need]))
        for need in plan.experiments[paper].needs
    }


def items_needs(plan: Plan, paper: str) -> dict[str, list[str]]:
    """The settings and studies that each item of a paper is drawn from."""
    return {name: item["needs"] for name, item in plan.experiments[paper].items.items()}


NOTES = {STAND_IN: "generated stand-in for", REAL: "real", UNVERIFIED: "unverified"}
"""How each kind of data is called before its name."""


def source_note(plan: Plan, paper: str, item: str) -> str:
    """Data, scale and seeds of an item, in one line."""
    needs = plan.experiments[paper].items[item]["needs"]
    data = [
        f"{NOTES[kind_of_data(plan, name)]} {name}" for name in plan.used_datasets(paper, needs)
    ]
    scale, seeds = plan.config["scale"], seed_range(plan.used_seeds(paper, needs))
    return f"Data: {', '.join(data) or 'simulated'}. Scale: {scale}. Seeds: {seeds}."


def outlines(plan: Plan) -> dict[str, dict]:
    """What the overview shows of each paper of the run before its page is there, by key."""
    shown = ("title", "kind")
    return {
        key: {
            "title": paper.title,
            "citation": paper.citation,
            "items": {
                name: {word: item[word] for word in shown} for name, item in paper.items.items()
            },
        }
        for key, paper in plan.experiments.items()
    }


def page_paper(plan: Plan, key: str) -> dict:
    """All that a paper's page says beyond its results. Paths are the project's."""
    paper = plan.experiments[key]
    return {
        "key": key,
        "title": paper.title,
        "citation": paper.citation,
        "readme": f"papers/{key}/README.md",
        "claims": plan.file("claims", paper=key),
        **_origin(plan, key, paper.needs),
        "items": {name: _page_item(plan, key, name) for name in paper.items},
        "needs": {name: _page_need(plan, key, name) for name in paper.needs},
    }


def _page_item(plan: Plan, paper: str, name: str) -> dict:
    item = plan.experiments[paper].items[name]
    origin = _origin(plan, paper, item["needs"])
    return {
        **{word: item[word] for word in ("title", "caption", "expected", "kind", "needs")},
        "highlight": item.get("highlight"),
        "answer": _answer(item, plan.config["scale"], origin),
        "files": plan.item_files(paper, name),
        **origin,
    }


def _answer(item: Mapping, scale: str, origin: Mapping) -> str | None:
    """The item's answer, if it was found on the data and seeds of this run, at its scale."""
    answer = item.get("answer", {}).get(scale)
    if answer is None or any(answer[word] != origin[word] for word in ("datasets", "seeds")):
        return None
    return answer["text"]


def _page_need(plan: Plan, paper: str, name: str) -> dict:
    """A setting with its whole log and training, or a study, as it is run."""
    experiment = plan.experiments[paper]
    origin = _origin(plan, paper, [name])
    if name in experiment.studies:
        return {"kind": "study", "parameters": experiment.studies[name], **origin}
    log = experiment.logs[experiment.settings[name]["log"]]
    # What its policy says already.
    told = {key: value for key, value in log.items() if key not in ("lanes", "ranker")}
    parameters = {**plan.fit_parameters(paper, name), "log": told}
    return {"kind": "setting", "parameters": parameters, **origin}


def _origin(plan: Plan, paper: str, needs: Iterable[str]) -> dict:
    """Data sets and their kinds, seeds, and the logs of the jobs, behind settings and studies."""
    needs = list(needs)
    return {
        "datasets": {name: kind_of_data(plan, name) for name in plan.used_datasets(paper, needs)},
        "seeds": plan.used_seeds(paper, needs),
        "logs": plan.logs_of(paper, needs),
    }


def page_sources(plan: Plan) -> list[str]:
    """The templates of pages: sources of the jobs that write them, as code is."""
    folder = plan.root / "twotowers" / "report" / "templates"
    return sorted(str(path.relative_to(plan.root)) for path in folder.iterdir())


def crate_data(plan: Plan) -> list[dict]:
    """The data that papers read: manifests of files, and sizes and seeds of stand-ins."""
    names = dict.fromkeys(
        name
        for key, paper in plan.experiments.items()
        for name in plan.used_datasets(key, paper.needs)
    )
    return [
        {"name": name, "generated": plan.standin(name)}
        if plan.is_standin(name)
        else {"name": name, "manifest": plan.file("manifest", dataset=name)}
        for name in names
    ]

"""What items, the page and the crate are told of where their numbers came from, by the plan."""

from __future__ import annotations

import os
from collections.abc import Iterable

from twotowers.running.experiments import seed_range
from twotowers.running.plan import Plan


def source_note(plan: Plan, paper: str, item: str) -> str:
    """What a reader must know of where an item's numbers came from."""
    needs = plan.experiments[paper].items[item]["needs"]
    data = [
        f"{'generated stand-in for' if plan.is_standin(name) else 'real'} {name}"
        for name in plan.used_datasets(paper, needs)
    ]
    scale, seeds = plan.config["scale"], seed_range(plan.used_seeds(paper, needs))
    return f"Data: {', '.join(data) or 'simulated'}. Scale: {scale}. Seeds: {seeds}."


def page_papers(plan: Plan) -> list[dict]:
    """All that the page says of each paper beyond its results."""
    return [
        {
            "key": key,
            "title": paper.title,
            "citation": paper.citation,
            "readme": os.path.relpath(f"papers/{key}/README.md", plan.figures),
            "datasets": _origins(plan, paper.datasets),
            "seeds": paper.seeds,
            "claims": plan.file("claims", paper=key),
            "logs": plan.logs_of(key),
            "items": {name: _page_item(plan, key, name) for name in paper.items},
        }
        for key, paper in plan.experiments.items()
    ]


def _page_item(plan: Plan, paper: str, name: str) -> dict:
    item = plan.experiments[paper].items[name]
    return {
        **{word: item[word] for word in ("title", "caption", "expected", "kind")},
        "highlight": item.get("highlight"),
        "files": plan.item_files(paper, name),
        "logs": plan.logs_of(paper, item["needs"]),
        "datasets": _origins(plan, plan.used_datasets(paper, item["needs"])),
        "seeds": plan.used_seeds(paper, item["needs"]),
    }


def _origins(plan: Plan, datasets: Iterable[str]) -> dict[str, bool]:
    """Whether each data set is a stand-in."""
    return {name: plan.is_standin(name) for name in datasets}


def crate_data(plan: Plan) -> list[dict]:
    """What the papers read: files by their manifest, stand-ins by how they are generated."""
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

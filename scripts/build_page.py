"""A paper's items, claims and timings -> its page and summary; and the overview, so far."""

import json
from os.path import dirname, relpath
from pathlib import Path

import pandas as pd
import yaml

from scripts.runner import job
from twotowers.claims.gates import lines
from twotowers.claims.recorded import read_recorded
from twotowers.report.pages import write_overview, write_paper
from twotowers.workflow.records import cost

YAML = {"sort_keys": False, "default_flow_style": None, "width": 88}
"""As experiment.yaml has parameters."""


@job
def main(inputs, outputs, *, paper: dict, papers: list[str], scale: str, version: str):
    """Write page and summary.

    Inputs are there to be ready; `paper` is `twotowers.workflow.descriptions.page_paper`, `papers`
    the keys of the run's papers, for the overview.
    """
    folder = dirname(outputs.page)
    claims = pd.read_csv(paper["claims"], keep_default_na=False, dtype=str)
    gates = pd.read_csv(paper["gates"], keep_default_na=False)
    recorded = read_recorded(paper["recorded"], digest=paper["digest"])
    judged = [
        row | {"recorded": recorded.get(row["claim"], [])} for row in claims.to_dict("records")
    ]

    def provenance(part, needs):
        about = {"datasets": part["datasets"], "seeds": part["seeds"], "scale": scale}
        logs = (log for name in needs for log in paper["needs"][name]["logs"])
        return about | {"version": version, **cost(logs)}

    items = [
        {
            **item,
            "name": name,
            "table": pd.read_csv(next(path for path in item["files"] if path.endswith(".csv"))),
            "claims": [row for row in judged if row["item"] == name],
            "files": {path.rsplit(".")[-1]: relpath(path, folder) for path in item["files"]},
            "provenance": provenance(item, item["needs"]),
        }
        for name, item in paper["items"].items()
    ]
    settings = [
        {
            "name": name,
            "kind": need["kind"],
            "text": yaml.safe_dump(need["parameters"], **YAML).rstrip(),
            "provenance": provenance(need, [name]),
            "gates": lines(gates[gates["setting"] == name]),
        }
        for name, need in paper["needs"].items()
    ]
    page = {
        **paper,
        "root": relpath(".", folder),
        "items": items,
        "settings": settings,
        "provenance": provenance(paper, paper["needs"]),
        "claims": [row for row in judged if row["item"] not in paper["items"]],
        "findings": json.loads(Path(paper["findings"]).read_text(encoding="utf-8")),
    }
    write_paper(page, folder)
    write_overview(dirname(folder), papers, scale=scale, version=version)

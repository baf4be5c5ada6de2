"""A digest of the code and settings behind a paper's verdicts.

Recorded verdicts keep it. They are of today's code if it has not changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from twotowers.datasets.sources import LETOR
from twotowers.files.yamls import read_yaml
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


def recorded(plan: Planner, paper: str) -> list[str]:
    """The files with verdicts of earlier runs that are kept with a paper."""
    files = sorted((plan.root / "papers" / paper / "recorded").glob("*.csv"))
    return [str(path.relative_to(plan.root)) for path in files]


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

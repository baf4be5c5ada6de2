"""Plans of all papers at every scale, and of profiles."""

import re
import sys
from collections import Counter
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
import yaml

from tests.workflow.project import PAPERS
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT
from twotowers.splits import ANNOTATIONS, DOCUMENTS
from twotowers.workflow.plan import ENDINGS, WILDCARDS, Places
from twotowers.workflow.planning import make_plan

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("plans")]

CONDA = ROOT / "tests" / "conda" / "bin"
"""Where the stand-in for conda is."""


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
@pytest.mark.parametrize("files", [["config.yaml"], ["config.yaml", "config/mq2008.yaml"]])
def test_all_that_a_job_reads_and_a_run_makes_is_made_by_a_job(scale, files):
    """Of all papers, from stand-ins and from files."""
    config = {"papers": PAPERS, "scale": scale}
    for file in files:
        own = read_yaml(ROOT / file)
        config = own | config | {"datasets": {**config.get("datasets", {}), **own["datasets"]}}
    plan = make_plan(config)
    places, made = Places(plan["results"], plan["figures"]), set()
    for rule, keys in plan["jobs"].items():
        for key in keys:
            names = dict(zip(WILDCARDS[rule], key.split("|"), strict=True)) if key else {}
            made |= {each.format(**names) for each in outputs(places, rule)}
    inputs = [job["inputs"] for own in plan["jobs"].values() for job in own.values()]
    read = {path for each in inputs for path in (each.values() if isinstance(each, dict) else each)}
    assert read | {*plan["targets"]} <= made


KINDS = {
    "generate_standin": ["raw"],
    "parse": ["raw"],
    "fetch": ["manifest"],
    "claims": ["claims", "gates", "findings"],
    "page": ["page", "summary"],
    "overview": ["overview", "verdicts"],
}
"""The artefacts of rules, where they are not one that has the rule's name."""


def outputs(places: Places, rule: str) -> list[str]:
    """The files that a job of a rule makes, with its wildcards."""
    if rule == "encode":
        return [places.file("raw", split=part) for part in (DOCUMENTS, ANNOTATIONS)]
    if rule == "preprocess":
        return [*places.rankings().values()]
    if rule in ENDINGS:
        return [places.file("item", ending=ending) for ending in ENDINGS[rule]]
    return [places.file(kind) for kind in KINDS.get(rule, [rule])]


def test_a_plan_for_slurm_batches_the_same_jobs(unbuilt, cluster_python):
    cluster = replace(unbuilt, python=cluster_python)
    run = cluster.snakemake("--dry-run", "--workflow-profile", "profiles/slurm")
    assert run.code == 0, run.text
    expected = counts(unbuilt.plan())
    assert counts(run.jobs) == expected
    limited = re.findall(r"^ *resources: .*mem_mb=[1-9]\d*, .*runtime=[1-9]\d*", run.text, re.M)
    assert len(limited) == expected.total() + len(["all"])
    profile = yaml.safe_load((unbuilt.folder / "profiles" / "slurm" / "config.yaml").read_text())
    batches = dict(entry.split("=") for entry in profile["group-components"])
    grouped = Counter()
    for rule, group in (entry.split("=") for entry in profile["groups"]):
        grouped[group] += expected[rule]
    submissions = Counter(re.findall(r"Group job (\w+) ", run.text))
    assert submissions == {g: ceil(jobs / int(batches[g])) for g, jobs in grouped.items()}


def test_the_gpu_profile_trains_with_cuda(unbuilt):
    """One plan, with the stand-in for conda in the PATH."""
    path = f"{CONDA}:{Path(sys.executable).parent}:{unbuilt.environment['PATH']}"
    gpu = ["--workflow-profile", "profiles/gpu", "--sdm", "conda"]
    run = unbuilt.snakemake("--dry-run", *gpu, PATH=path)
    assert run.code == 0, run.text
    planned = re.findall(r"^Conda environment envs/(\S+)\.yaml will be created", run.text, re.M)
    assert sorted(planned) == ["data", "jax-cpu", "jax-cuda", "plots"]
    asking = re.findall(r"^rule (\w+):\n(?:    .*\n)*?    resources: .*gpu=1\b", run.text, re.M)
    assert {*asking} == {"policy", "fit", "study"}


def counts(jobs: dict[str, set[str]]) -> Counter:
    """The number of jobs of each rule. `all` has no output and does not count."""
    return +Counter({rule: len(outputs) for rule, outputs in jobs.items()})

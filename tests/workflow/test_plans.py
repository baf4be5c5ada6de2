"""The jobs that experiment.yaml declares, at every scale: in dry runs and in plans."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
import yaml

from tests.workflow.project import PAPER, PAPERS, Project, made_at
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT
from twotowers.splits import ANNOTATIONS, DOCUMENTS, LOG, PAGES, SPLITS
from twotowers.workflow.plan import Places
from twotowers.workflow.planning import make_plan

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("plans")]

CONFIG = read_yaml(ROOT / "config.yaml")
VECTORS = (DOCUMENTS, ANNOTATIONS)
CONDA = ROOT / "tests" / "conda" / "bin"
"""Where the stand-in for conda is."""


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_the_plan_of_a_scale_has_every_job_that_is_declared(unbuilt, scale):
    """Of all papers, without Snakemake, whose rules take all jobs from the plan."""
    assert needed(CONFIG | {"papers": PAPERS, "scale": scale}) == declared(unbuilt, PAPERS, scale)


def test_a_run_from_files_has_every_job_that_is_declared(unbuilt):
    own = read_yaml(ROOT / "config" / "mq2008.yaml")
    own |= {"papers": [PAPER], "scale": "smoke", "datasets": CONFIG["datasets"] | own["datasets"]}
    assert needed(CONFIG | own) == declared(unbuilt, [PAPER], "smoke", from_files=True)


def needed(config: dict) -> Counter:
    """The number of jobs of each rule in a plan, but for those of data that no job reads."""
    plan = make_plan(config)
    inputs = [job["inputs"] for own in plan["jobs"].values() for job in own.values()]
    read = {path for each in inputs for path in (each.values() if isinstance(each, dict) else each)}
    places = Places(plan["results"], plan["figures"])

    def raw(dataset: str, *parts: str) -> list[str]:
        return [places.file("raw", dataset=dataset, split=part) for part in parts or VECTORS]

    def rankings(paper: str, dataset: str) -> list[str]:
        return [*places.rankings(paper, dataset).values()]

    made = {"generate_standin": raw, "encode": raw, "parse": raw, "preprocess": rankings}
    found = Counter()
    for rule, own in plan["jobs"].items():
        for key in own:
            files = {*made[rule](*key.split("|"))} if rule in made else set()
            found[rule] += rule not in made or not read.isdisjoint(files)
    return +found


def test_a_plan_for_slurm_batches_the_same_jobs(unbuilt, cluster_python):
    cluster = replace(unbuilt, python=cluster_python)
    run = cluster.snakemake("--dry-run", "--workflow-profile", "profiles/slurm")
    assert run.code == 0, run.text
    expected = declared(unbuilt, [PAPER], "smoke")
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


OWN_RULES = """
rule stranger:
    output:
        PLAN.file("study", paper="{paper}", study="{study}"),
    shell:
        "touch {{output}}"


ruleorder: stranger > study
"""


def test_the_gpu_profile_trains_with_cuda_and_a_paper_may_bring_rules_of_its_own(unbuilt):
    """One plan, with the stand-in for conda in the PATH."""
    file = unbuilt.folder / "papers" / PAPER / "rules.smk"
    (study, *_) = unbuilt.experiment["studies"]
    file.write_text(OWN_RULES.format(paper=PAPER, study=study))
    path = f"{CONDA}:{Path(sys.executable).parent}:{unbuilt.environment['PATH']}"
    gpu = ["--workflow-profile", "profiles/gpu", "--sdm", "conda"]
    try:
        run = unbuilt.snakemake("--dry-run", *gpu, PATH=path)
    finally:
        file.unlink()
    assert run.code == 0, run.text
    assert len(run.jobs["stranger"]) == 1
    assert len(run.jobs["study"]) == declared(unbuilt, [PAPER], "smoke")["study"] - 1
    planned = re.findall(r"^Conda environment envs/(\S+)\.yaml will be created", run.text, re.M)
    assert sorted(planned) == ["data", "jax-cpu", "jax-cuda", "plots"]
    asking = re.findall(r"^rule (\w+):\n(?:    .*\n)*?    resources: .*gpu=1\b", run.text, re.M)
    assert {*asking} == {"policy", "fit", "study"}


def counts(jobs: dict[str, set[str]]) -> Counter:
    """The number of jobs of each rule. `all` has no output and does not count."""
    return +Counter({rule: len(outputs) for rule, outputs in jobs.items()})


def declared(project: Project, papers: list[str], scale: str, from_files: bool = False) -> Counter:
    """The number of jobs of each rule of some papers, with all or none of their data generated.

    Papers share raw data and the overview.
    """
    total, used, logs = Counter(overview=1), set(), set()
    for paper in papers:
        experiment = replace(project, paper=paper).experiment
        jobs, ranked, read = declared_alone(experiment, scale)
        total += jobs
        used |= ranked
        logs |= read
    parts = len(SPLITS) * len(used) + len(logs)
    if from_files:
        return total + Counter(fetch=len(used | {name for name, _ in logs}), parse=parts)
    # An encoder gives a generated log with text both its documents and its annotations.
    encoded = {name for name, _ in logs if scale in CONFIG["datasets"][name].get("encoder", {})}
    vectors = [(name, part) for name, part in logs if name in encoded and part in VECTORS]
    return total + Counter(generate_standin=parts - len(vectors), encode=len(encoded))


def declared_alone(experiment: dict, scale: str) -> tuple[Counter, set[str], set[tuple[str, str]]]:
    """A paper's own jobs of each rule, the data sets that it ranks, and the parts of its logs."""
    values = experiment["scales"][scale]
    seeds = values["seeds"]
    experiment = made_at(experiment, scale)
    settings, studies = ([*experiment[section].values()] for section in ("settings", "studies"))
    seeds_of_logs = {name: set() for name in experiment["logs"]}
    for setting in settings:
        seeds_of_logs[setting["log"]] |= set(setting.get("seeds", seeds))
    logs = [(experiment["logs"][name], own) for name, own in seeds_of_logs.items() if own]
    users = [*(log for log, _ in logs), *studies]
    used = {user["dataset"] for user in users if "dataset" in user}
    # A click log needs no preparation.
    ranked = {name for name in used if experiment["datasets"][name]}
    prepared = ranked & {user.get("dataset") for user in users if not user.get("raw")}
    simulated = [(log, own) for log, own in logs if log.get("from") != "dataset"]
    policies = (
        {
            (log["dataset"], log["relevance"], log["policy"]["ranker"], seed)
            for log, own in simulated
            if log.get("from") != "lists"
            for seed in own
        }
        | {
            # Given lists that a ranker sorts have one for all seeds.
            (log["dataset"], "annotated", log["policy"]["ranker"], log["policy"]["seed"])
            for log, _ in simulated
            if log.get("from") == "lists" and "dataset" in log
        }
        | {
            # Studies share the policy of the first seed.
            (study["dataset"], "annotated", study["ranker"], seeds[0])
            for study in studies
            if "ranker" in study
        }
    )
    jobs = Counter(
        preprocess=len(prepared),
        policy=len(policies),
        clicks=sum(len(own) for _, own in simulated),
        fit=sum(len(setting.get("seeds", seeds)) for setting in settings),
        study=sum(len(study.get("seeds", seeds)) for study in studies),
        claims=1,
        page=1,
        **Counter(item["kind"] for item in experiment["items"].values()),
    )
    parts = {
        (user["dataset"], part)
        for user in users
        if user.get("dataset") in used - ranked
        for part in parts_of(user)
    }
    return jobs, ranked, parts


def parts_of(user: dict) -> list[str]:
    """The parts of a click log that a log of an experiment, or a study, reads."""
    if user.get("raw"):
        return [PAGES, ANNOTATIONS]
    described = [DOCUMENTS, ANNOTATIONS] if user.get("features") else []
    return [PAGES if user.get("record") == "sessions" else LOG, *described]

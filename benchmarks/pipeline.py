"""The pipeline's overhead: Snakemake, starting Python, importing, compiling."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import ONE_THREAD, ROOT, best_seconds, child, compiled_in, seconds
from benchmarks.scaling import BASE, prepare

SIZES = {
    "full": {"jobs": 40, "base": {}, "repeats": 3},
    "quick": {"jobs": 2, "base": {"queries": 40, "sessions": 10**4}, "repeats": 1},
}
IMPORTS = ("numpy", "jax", "flax.nnx", "twotowers.jobs.fit", "twotowers.report.figures")
WORKFLOW = """
rule all:
    input: expand("{job}.txt", job=range(config["jobs"]))
rule job:
    output: "{job}.txt"
    script: "job.py"
"""
JOB = "from pathlib import Path\nPath(snakemake.output[0]).touch()\n"
FIT = f"import scripts.runner\nimport twotowers.jobs.fit\n{JOB}"


def run(*, jobs: int, base: dict, repeats: int) -> Iterator[dict]:
    """Yield rows of a task and its seconds."""
    python = [sys.executable, "-c"]
    yield row("start Python", best_seconds(lambda: call([*python, ""]), repeats))
    for module in IMPORTS:
        took = best_seconds(lambda module=module: call([*python, f"import {module}"]), repeats)
        yield row(f"start Python and import {module}", took)
    yield row("Snakemake, one job that does nothing", workflow_seconds(JOB, 1))
    for what, job in (("imports nothing", JOB), ("imports what a fit does", FIT)):
        one, many = (workflow_seconds(job, count) for count in (1, jobs))
        each = (many - one) / (jobs - 1)
        yield row(f"Snakemake, each further job that {what}, its own Python included", each)
    dry = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all"]
    target = f"{Path(tempfile.gettempdir()) / 'nowhere'}"
    planned = [*dry, "--config", f"results={target}", f"figures={target}"]
    yield row("Snakemake, planning every job of all papers", seconds(lambda: call(planned)))
    yield from compilation(base)


def row(what: str, took: float) -> dict:
    return {"what": what, "seconds": took}


def call(command: list[str], folder: Path = ROOT) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)


def workflow_seconds(job: str, jobs: int) -> float:
    """Seconds of a Snakemake run of jobs, one at a time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Snakefile").write_text(WORKFLOW)
        Path(folder, "job.py").write_text(job)
        command = [sys.executable, "-m", "snakemake", "--cores", "1"]
        command += ["--config", f"jobs={jobs}"]
        return seconds(lambda: call(command, Path(folder)))


def compilation(base: dict) -> Iterator[dict]:
    """The first fit of a process, without and with JAX's compilation cache on disk."""
    with tempfile.TemporaryDirectory() as folder:
        cache = compiled_in(folder)
        for state in ("cold", "warm"):
            for tower in ("linear", "deep"):
                found = child(
                    "benchmarks.pipeline:first_fit",
                    environment=ONE_THREAD | cache,
                    tower=tower,
                    **BASE | base,
                )
                yield row(f"compile a fit of the {tower} tower, {state} cache", found["seconds"])


def first_fit(*, tower: str, **size) -> dict:
    """Seconds of the first fit of a process beyond those of the second."""
    train = prepare(tower=tower, epochs=1, **size)
    first = seconds(train)
    return {"seconds": first - best_seconds(train)}

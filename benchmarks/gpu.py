"""Every fit of Hager et al. 2025 at scale paper on GPUs, and some of them again on cores.

By the pipeline, as its users run it, in a folder of its own. Click logs, which cores make, stay
for the next time; fits are always made anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import CACHE, ROOT, seconds
from twotowers import joblogs
from twotowers.devices import visible_gpus
from twotowers.experiments import load_experiment
from twotowers.results import read_results
from twotowers.yamls import read_yaml

PAPER = "hager2025"
FOLDER = CACHE / "gpu"
SIZES = {
    "full": {
        "scale": "paper",
        "profile": "gpu",
        "settings": None,
        # One of each tower.
        "again": ["fit-linear", "fit-deep", "fit-embedding"],
    },
    "quick": {
        "scale": "smoke",
        "profile": "default",
        "settings": ["fit-linear"],
        "again": ["fit-linear"],
    },
}
LANE = ["strength", "temperature", "weighting", "metric", "position"]
COMPARED = ("position_bias", "ndcg@10", "nll")
SAMPLER = [
    "nvidia-smi",
    "--query-gpu=utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
    "--loop=1",
]


def run(
    *, scale: str, profile: str, settings: list[str] | None, again: list[str]
) -> Iterator[dict]:
    """Yield a row for the click logs, for all fits, for each setting, and for each fit again.

    Args:
        scale: of the pipeline.
        profile: folder of `profiles/`; with `gpu` rankers and fits are trained on GPUs.
        settings: of the experiment; all if None.
        again: settings whose first seed is fitted on cores too, to compare time and results.

    Raises:
        InputError: the profile is `gpu`, and no GPU is visible.
    """
    gpus = visible_gpus() if profile == "gpu" else []
    paper = load_experiment(PAPER, read_yaml(ROOT / "config.yaml") | {"scale": scale})
    jobs = {
        setting: [f"fits/{PAPER}/{setting}/{seed}" for seed in paper.seeds]
        for setting in settings or paper.settings
    }
    every = [job for of_setting in jobs.values() for job in of_setting]
    results = FOLDER / scale
    shutil.rmtree(results / "fits", ignore_errors=True)

    devices = [f"--workflow-profile=profiles/{profile}", f"--resources=gpu={len(gpus)}"]
    took = seconds(lambda: make(scale, every, *devices, "--until=clicks"))
    yield {"what": "click logs, and all that is before them", "seconds": took}
    with sampled(gpus) as use:
        took = seconds(lambda: make(scale, every, *devices))
    yield {"what": "all fits", "seconds": took, **made(results, every), **use}
    for setting, its in jobs.items():
        yield {"what": setting, "seconds": work(results, its), **made(results, its)}
    for setting in again:
        job = jobs[setting][:1]
        before = read_results(files(results, job))
        make(scale, job, "--workflow-profile=profiles/default", "--force")
        off = differences(before, read_results(files(results, job)))
        what = f"{setting}, first seed, on cores"
        yield {"what": what, "seconds": work(results, job), **made(results, job), **off}


def make(scale: str, jobs: list[str], *options: str) -> None:
    """Have Snakemake make the results of jobs."""
    command = [sys.executable, "-m", "snakemake", "--cores=all", "--quiet=all", *options]
    command += ["--config", f"scale={scale}", f"papers=[{PAPER}]"]
    command += [f"results={FOLDER}", f"figures={FOLDER / 'figures'}", "--"]
    subprocess.run(command + list(map(str, files(FOLDER / scale, jobs))), cwd=ROOT, check=True)


def files(results: Path, jobs: Iterable[str]) -> list[Path]:
    return [results / f"{job}.parquet" for job in jobs]


def logs(results: Path, jobs: Iterable[str]) -> list[Path]:
    return [results / "logs" / f"{job}.log" for job in jobs]


def work(results: Path, jobs: list[str]) -> float:
    """Seconds that the jobs took, one after the other, once they had imported what they need."""
    return joblogs.seconds(logs(results, jobs))


def made(results: Path, jobs: list[str]) -> dict:
    """How many fits, one for each lane, came of how many jobs, on what."""
    lanes = read_results(files(results, jobs))["metric"] == "epochs"
    devices = {joblogs.read(log)["device"] for log in logs(results, jobs)}
    return {"jobs": len(jobs), "fits": int(lanes.sum()), "device": ", ".join(sorted(devices))}


def differences(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """The largest difference between two results of the same lanes, by metric."""
    both = one.merge(other, on=LANE, validate="one_to_one")
    off = (both["value_x"] - both["value_y"]).abs()
    return {f"{metric} off": float(off[both["metric"] == metric].max()) for metric in COMPARED}


@contextmanager
def sampled(gpus: list[str]) -> Iterator[dict[str, float]]:
    """What the GPUs do during a block, sampled once a second: a dict that is filled at its end.

    The mean share of time that a GPU was busy, and the most memory used on one, in GB (10^9
    bytes); nothing without GPUs.
    """
    use = {}
    if not gpus:
        yield use
        return
    with (
        tempfile.TemporaryFile("w+") as file,
        subprocess.Popen(SAMPLER, stdout=file) as sampler,
    ):
        try:
            yield use
        finally:
            sampler.terminate()
        sampler.wait()
        file.seek(0)
        busy, mebibytes = np.loadtxt(file, delimiter=",", ndmin=2).T
    use |= {"busy": busy.mean() / 100, "gpu_gb": mebibytes.max() * 2**20 / 1e9}

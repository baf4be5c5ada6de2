"""Figure 2 of Hager et al. 2025 at scale paper on GPUs, and its first seeds again on cores.

Its three settings have a linear tower, a deep one, and a parameter per query-document pair. The
pipeline makes them in a folder of its own, as its users run it. Click logs are made on cores and
kept for the next time. Fits are always compiled and made again.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from benchmarks.measure import CACHE, ROOT, seconds
from twotowers.claims.statistics import read_results
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import load_paper
from twotowers.files.yamls import read_yaml
from twotowers.workflow import records
from twotowers.workflow.devices import visible_gpus

PAPER = "hager2025"
FOLDER = CACHE / "gpu"
COMPILED = "compiled"
SIZES = {
    "full": {
        "scale": "paper",
        "settings": ["fit-linear", "fit-deep", "fit-embedding"],
        "needs_gpu": True,
    },
    "quick": {"scale": "smoke", "settings": ["fit-linear"], "needs_gpu": False},
}
CORES = ["--workflow-profile=profiles/default"]
LANE = ["strength", "temperature", "weighting", "metric", "position"]
COMPARED = ("position_bias", "ndcg@10", "nll")


def run(*, scale: str, settings: list[str], needs_gpu: bool) -> Iterator[dict]:
    """Yield a row for the click logs, for all fits, for each setting, and for each fit again.

    The first seed of each setting is also fitted on one core, to compare time and results. These
    jobs run side by side. Without `needs_gpu`, all is done on cores.
    """
    gpus = visible_gpus() if needs_gpu else []
    paper = load_paper(PAPER, read_config(read_yaml(ROOT / "config.yaml") | {"scale": scale}))
    jobs = {
        setting: [f"fits/{PAPER}/{setting}/{seed}" for seed in paper.seeds] for setting in settings
    }
    every = [job for of_setting in jobs.values() for job in of_setting]
    results = FOLDER / scale
    for old in ("fits", COMPILED):
        shutil.rmtree(results / old, ignore_errors=True)

    devices = ["--workflow-profile=profiles/gpu", f"--resources=gpu={len(gpus)}"] if gpus else CORES
    kept = (results / "clicks").exists()
    took = seconds(lambda: make(scale, every, *CORES, "--until=clicks"))
    if not kept:
        yield {"what": "click logs, and all that is before them", "seconds": took}
    took = seconds(lambda: make(scale, every, *devices))
    yield {"what": "all fits", **made(results, every), "seconds": took}
    for setting, its in jobs.items():
        yield {"what": setting, **made(results, its)}
    first = {setting: its[:1] for setting, its in jobs.items()}
    before = {setting: read_results(files(results, job)) for setting, job in first.items()}
    for setting, job in first.items():
        yield {"what": f"{setting}, first seed", **made(results, job)}
    make(scale, [job for (job,) in first.values()], *CORES, "--force")
    for setting, job in first.items():
        off = differences(before[setting], read_results(files(results, job)))
        yield {"what": f"{setting}, first seed, on one core", **made(results, job), **off}


def make(scale: str, jobs: list[str], *options: str) -> None:
    results = FOLDER / scale
    command = [sys.executable, "-m", "snakemake", "--cores=all", "--quiet=all", *options]
    command += ["--config", f"scale={scale}", f"papers=[{PAPER}]"]
    command += [f"results={FOLDER}", f"figures={FOLDER / 'figures'}", "--"]
    command += map(str, files(results, jobs))
    compiled = {"JAX_COMPILATION_CACHE_DIR": str(results / COMPILED)}
    compiled["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    subprocess.run(command, cwd=ROOT, env=os.environ | compiled, check=True)


def files(results: Path, jobs: Iterable[str]) -> list[Path]:
    return [results / f"{job}.parquet" for job in jobs]


def made(results: Path, jobs: list[str]) -> dict:
    """Numbers of fits (one per lane) and jobs, the device, and the seconds.

    Seconds are summed over jobs, without starting Python and importing.
    """
    lanes = read_results(files(results, jobs))["metric"] == "epochs"
    said = [results / "logs" / f"{job}.log" for job in jobs]
    return {
        "jobs": len(jobs),
        "fits": int(lanes.sum()),
        "device": ", ".join(sorted({records.read(log)["device"] for log in said})),
        "seconds": records.cost(said)["seconds"],
    }


def differences(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """The largest difference between two results of the same lanes, by metric."""
    both = one.merge(other, on=LANE, validate="one_to_one")
    off = (both["value_x"] - both["value_y"]).abs()
    return {f"{metric} off": float(off[both["metric"] == metric].max()) for metric in COMPARED}

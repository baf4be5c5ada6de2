"""Kill the pipeline again and again, and compare what it draws with an undisturbed run.

    .venv/bin/python -m tests.soak --kills 200 --seed 1 --folder /tmp/soak --record docs/soak.md

It runs one paper at scale smoke in a copy of the project. Kills (SIGKILL) come at random moments
and hit the whole run, its scheduler alone, one job, or the process of which jobs are forks and
these with it. In a chain, each run goes on where the previous one was killed, until one ends by
itself. Then every csv and svg must have the bytes of the undisturbed run. A random part of all
files is removed for the next chain.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from tests.workflow.project import PAPER, Project, clean_project, own_environment
from twotowers.files.artefacts import atomic
from twotowers.randomness import stream

KINDS = ("run", "scheduler", "job", "preloaded")
SHARES = {
    "raw": 0.05, "rankings": 0.05, "policies": 0.1, "clicks": 0.1, "fits": 0.25, "claims": 0.3,
}  # fmt: skip
"""Chance that a file of each kind is removed between chains. That of items is ITEMS."""
ITEMS = 0.3


@dataclass
class Record:
    """Events so far.

    Attributes:
        kills: kind and running jobs of every kill. Jobs are named by their script.
        chains: completed chains.
        runs: runs that were started.
        faults: one line each: other bytes, runs that failed without a killed job.
    """

    kills: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    chains: int = 0
    runs: int = 0
    faults: list[str] = field(default_factory=list)


def soak(
    project: Project,
    expected: dict[str, str],
    rng: np.random.Generator,
    log,
    *,
    kills: int,
    between: float,
    shares: dict[str, float] = SHARES,
) -> Iterator[Record]:
    """Yield the record after every run, until `kills` kills are survived.

    Args:
        project: a copy in which the pipeline has run.
        expected: the digests of the items of an undisturbed run.
        rng: draws the removed files, and the times and targets of kills.
        log: an open file for the messages of all runs.
        kills: the number of kills.
        between: mean seconds between kills. The times are exponential, so that no moment is safe.
        shares: see SHARES.
    """
    record = Record()
    while len(record.kills) < kills:
        remove_some(project, rng, shares)
        while not one_run(project, rng, log, record, kills, between):
            yield record
            if record.faults:
                return
        record.chains += 1
        record.faults += differences(project, expected)
        yield record
        if record.faults:
            return


def remove_some(project: Project, rng: np.random.Generator, shares: dict[str, float]) -> None:
    """Remove a random part of what was made: at least one item."""
    results = project.folder / "results" / "smoke"
    for kind, share in shares.items():
        for path in sorted(file for file in (results / kind).rglob("*") if file.is_file()):
            if rng.random() < share:
                path.unlink()
    items = sorted((project.folder / "figures" / "smoke" / project.paper).iterdir())
    certain = rng.integers(len(items))
    for number, path in enumerate(items):
        if number == certain or rng.random() < ITEMS:
            path.unlink()


def one_run(project: Project, rng, log, record: Record, kills: int, between: float) -> bool:
    """Start the pipeline and kill it or its jobs. Returns whether the run ended with all done."""
    # As after `snakemake --unlock`: a killed run leaves its lock.
    run = project.start("--cores", "2", "--nolock", stdout=log)
    record.runs += 1
    wounded = False
    while True:
        wait, kind, victim = rng.exponential(between), str(rng.choice(KINDS)), rng.random()
        try:
            run.wait(wait if len(record.kills) < kills else None)
        except subprocess.TimeoutExpired:
            jobs = running_jobs(run.pid)
            processes = psutil.Process(run.pid).children(recursive=True)
            if kind == "preloaded":
                for pid in {each.pid for each in processes} - {*jobs}:
                    _kill(pid)
                    wounded = True
                record.kills.append((kind, tuple(jobs.values()) or ("none",)))
                continue
            if kind == "job":
                if jobs:
                    pid = sorted(jobs)[int(victim * len(jobs))]
                    _kill(pid)
                    wounded = True
                    record.kills.append((kind, (jobs[pid],)))
                continue
            record.kills.append((kind, tuple(jobs.values()) or ("none",)))
            if kind == "run":
                os.killpg(run.pid, signal.SIGKILL)
            else:
                run.kill()
            run.wait()
            # Jobs whose scheduler was killed end by themselves.
            psutil.wait_procs(processes, timeout=120)
            return False
        if run.returncode and not wounded:
            record.faults.append(f"run {record.runs} failed by itself, exit {run.returncode}")
        return run.returncode == 0


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        """The process has just ended by itself. The kill counts as well."""


def running_jobs(scheduler: int) -> dict[int, str]:
    """Process id and script of each job of a run, from /proc."""
    jobs = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except (OSError, IndexError):
            continue  # It has ended meanwhile.
        scripts = [word for word in words if ".snakemake/scripts/" in word]
        if parent == scheduler and scripts:
            jobs[int(folder.name)] = scripts[0].split(".")[-2]
    return jobs


def differences(project: Project, expected: dict[str, str]) -> list[str]:
    """Differences from an undisturbed run."""
    found = project.digests()
    return [
        *(f"{name}: missing" for name in expected.keys() - found.keys()),
        *(f"{name}: unexpected" for name in found.keys() - expected.keys()),
        *(f"{name}: other bytes" for name in found if found[name] != expected.get(name)),
        *(f"planned again: {rule}" for rule in project.plan()),
    ]


def describe(
    record: Record, *, kills: int, seed: int, between: float, files: int, seconds: float
) -> str:
    """The record as a page."""
    kinds = Counter(kind for kind, _ in record.kills)
    of_kinds = ", ".join(str(kinds[kind]) for kind in KINDS)
    rules = Counter(name for _, names in record.kills for name in names)
    verdict = "; ".join(record.faults) or "none"
    return f"""\
# A trial of random kills

    .venv/bin/python -m tests.soak --kills {kills} --seed {seed} --between {between:g} \\
        --folder /tmp/soak --record docs/soak.md

This command writes this page. [tests/soak.py](../tests/soak.py) describes the trial.

| | |
|---|---|
| kills survived | {len(record.kills)} of {kills} |
| of the whole run, of the scheduler alone, of one job, of all forks | {of_kinds} |
| runs started, chains completed | {record.runs}, {record.chains} |
| files compared after each chain | {files} (every csv and svg of {PAPER} at scale smoke) |
| differences | {verdict} |
| seed | {seed} |
| wall time | {seconds / 60:.0f} min, the machine shared with other work |
| machine | {os.cpu_count()} cores, {platform.machine()}, {platform.system()} |

Scripts that were running at a kill (several jobs may run; `none` is planning or between jobs):

| script | kills |
|---|---:|
{chr(10).join(f"| {name} | {count} |" for name, count in rules.most_common())}
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the soak. Returns 1 if there were faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--between", type=float, default=12, help="mean seconds between kills")
    parser.add_argument("--folder", type=Path, required=True, help="where to work; is emptied")
    parser.add_argument("--record", type=Path, required=True, help="the page to write")
    options = parser.parse_args(arguments)
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    project = clean_project(options.folder / "two-towers", own_environment(options.folder))
    start = time.monotonic()
    with (options.folder / "runs.log").open("w") as log:
        undisturbed = project.start("--cores", "2", stdout=log)
        if undisturbed.wait():
            print(f"the undisturbed run failed: {log.name}")
            return 1
        expected = project.digests()
        print(f"undisturbed: {time.monotonic() - start:.0f} s, {len(expected)} files", flush=True)
        record, rng = Record(), stream("soak", options.seed)
        pace = {"kills": options.kills, "between": options.between}
        for record in soak(project, expected, rng, log, **pace):
            seconds = time.monotonic() - start
            with atomic(options.record) as path:
                facts = {"seed": options.seed, "files": len(expected), "seconds": seconds}
                path.write_text(describe(record, **pace, **facts))
            print(
                f"{seconds:.0f} s, {len(record.kills)} kills, {record.chains} chains, "
                f"{record.runs} runs, faults: {record.faults}",
                flush=True,
            )
    return 1 if record.faults else 0


if __name__ == "__main__":
    sys.exit(main())

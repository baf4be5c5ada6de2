"""Faults of a run, made for real. Afterwards a run ends with the same bytes as before.

All tests use one copy of the finished project, one after the other, and mostly its cheapest figure
and the inputs of this figure. The last test checks that nothing has stuck.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import yaml

from tests.soak import running_jobs, soak
from tests.workflow.project import PAPER, Project
from twotowers.randomness import stream

# With the tests of the pipeline, since they share the finished project.
pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("pipeline")]

STUDY = f"results/smoke/fits/{PAPER}/appendix_a/2021.parquet"
FIGURE = f"figures/smoke/{PAPER}/appendixA.csv"
TRAIN = "results/smoke/raw/mslr30k/train.parquet"
NOWHERE = "/proc/nowhere"


@pytest.fixture(scope="module")
def project(finished, tmp_path_factory) -> Project:
    """The copy of the project for all faults."""
    folder = tmp_path_factory.mktemp("faults") / "two-towers"
    shutil.copytree(finished.project.folder, folder)
    return replace(finished.project, folder=folder)


def remove(project: Project, *paths: str) -> dict[str, str]:
    """Remove files. Returns their digests."""
    digests = {path: digest(project, path) for path in paths}
    for path in paths:
        (project.folder / path).unlink()
    return digests


def digest(project: Project, path: str) -> str:
    return hashlib.sha256((project.folder / path).read_bytes()).hexdigest()


def check_made(project: Project, before: dict[str, str], **options) -> None:
    """Assert that a run makes the removed files again, with the same bytes."""
    run = project.snakemake("--cores", "1", *before, **options)
    assert run.code == 0, run.text
    assert {path: digest(project, path) for path in before} == before


def failure(run) -> str:
    """The line with the cause of a failed run."""
    assert run.code == 1, run.text
    assert "Traceback" not in run.text
    (line,) = re.findall(r"^\w+ failed: (.*)", run.text, re.MULTILINE)
    return line


def make(project: Project, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *arguments],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
    )


def await_job(run: subprocess.Popen) -> int:
    """The process id of the first job of a run. Waits for the job."""
    deadline = time.monotonic() + 120
    while not (jobs := running_jobs(run.pid)):
        assert run.poll() is None, "ended without a job"
        assert time.monotonic() < deadline, "no job began"
        time.sleep(0.05)
    return next(iter(jobs))


def await_fork(run: subprocess.Popen) -> int:
    """The process id of the first fork of a run's preloaded process. Waits for it."""
    await_job(run)
    deadline = time.monotonic() + 120
    scheduler = psutil.Process(run.pid)
    while not (forks := {*scheduler.children(recursive=True)} - {*scheduler.children()}):
        assert time.monotonic() < deadline, "no job was forked"
        time.sleep(0.01)
    return next(iter(forks)).pid


# Kills and signals


def test_random_kills(project, finished, tmp_path):
    shares = {"claims": 1.0, f"fits/{PAPER}/appendix_a": 1.0}
    rng = stream("kills in a test", 1)
    with (tmp_path / "log").open("w") as log:
        records = soak(project, finished.digests, rng, log, kills=5, between=4, shares=shares)
        *_, record = records
    assert record.faults == [], (tmp_path / "log").read_text()[-5000:]
    assert len(record.kills) == 5
    assert record.chains >= 1


@pytest.fixture
def heeded_interrupt() -> Iterator[None]:
    """Children obey SIGINT, even if the tests run in the background of a shell and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupt")
def test_ctrl_c(project):
    before = remove(project, STUDY)
    run = project.start("--cores", "1", STUDY)
    await_job(run)
    os.killpg(run.pid, signal.SIGINT)
    text, _ = run.communicate(timeout=60)
    assert run.returncode == 1, text
    assert not (project.folder / STUDY).exists()
    check_made(project, before)


def test_sigterm(project):
    before = remove(project, STUDY, FIGURE)
    run = project.start("--cores", "1", FIGURE)
    await_job(run)
    run.terminate()
    text, _ = run.communicate(timeout=60)
    assert run.returncode != 0, text
    assert (project.folder / STUDY).exists()
    assert not (project.folder / FIGURE).exists()
    check_made(project, before)


# Two runs


def test_two_runs_in_one_folder(project):
    before = remove(project, STUDY)
    first = project.start("--cores", "1", STUDY)
    job = await_job(first)
    os.kill(job, signal.SIGSTOP)
    second = project.snakemake("--cores", "1", FIGURE, "--force")
    os.kill(job, signal.SIGCONT)
    text, _ = first.communicate(timeout=120)
    assert second.code == 1
    (line,) = (line for line in second.text.splitlines() if "is working there" in line)
    assert f"process {first.pid} " in line
    assert not second.jobs
    assert first.returncode == 0, text
    assert {STUDY: digest(project, STUDY)} == before


# Damage


def test_deleted_intermediates(project):
    before = remove(project, TRAIN)
    assert "generate_standin" not in project.plan()
    ranked = [f"results/smoke/rankings/{PAPER}/mslr30k/{s}.parquet" for s in ("train", "test")]
    before |= remove(project, *ranked)
    check_made(project, before)


# Clocks and places


def test_a_clock_set_back(project):
    before = remove(project, FIGURE)
    tomorrow = time.time() + 86_400
    for path in (project.folder / "results").rglob("*.parquet"):
        os.utime(path, (tomorrow, tomorrow))
    check_made(project, before)
    assert project.plan(FIGURE) == {}


def test_a_moved_folder(project):
    place = project.folder.with_name("moved here, with spaces")
    project.folder.rename(place)
    try:
        assert replace(project, folder=place).plan(FIGURE, STUDY) == {}
    finally:
        place.rename(project.folder)


def test_no_home(project):
    before = remove(project, FIGURE)
    command = make(project, "--dry-run", "figures").stdout
    cache = re.search("XDG_CACHE_HOME='(.*?)' .venv/bin/snakemake", command).group(1)
    assert cache.startswith(str(project.folder))
    check_made(project, before, HOME=NOWHERE, XDG_CACHE_HOME=cache)


# No right, no room, no memory


@pytest.fixture
def powerless() -> tuple[str, ...]:
    """A launcher under which permissions also hold for root."""
    if os.getuid():
        return ()
    if not (setpriv := shutil.which("setpriv")):
        pytest.skip("root may write everywhere, and there is no setpriv to change that")
    rights = "-dac_override,-dac_read_search"
    return (setpriv, f"--bounding-set={rights}", f"--inh-caps={rights}")


@pytest.fixture
def read_only() -> Iterator:
    """Take the right to write from a folder until the test has ended."""
    changed = []

    def change(folder: Path) -> None:
        changed.append(folder)
        folder.chmod(0o555)

    yield change
    for folder in changed:
        folder.chmod(0o755)


def test_read_only_results(project, powerless, read_only):
    before = remove(project, FIGURE)
    lock = project.folder / "results" / "run.lock"
    lock.unlink()
    read_only(lock.parent)
    run = project.snakemake("--cores", "1", FIGURE, launcher=powerless)
    lock.parent.chmod(0o755)
    assert run.code == 1
    assert "results: cannot be written: Permission denied" in run.text
    assert not run.jobs
    check_made(project, before)


def test_read_only_figures(project, powerless, read_only):
    endings = ("pdf", "svg", "csv")
    before = remove(project, *(FIGURE.replace("csv", ending) for ending in endings))
    folder = (project.folder / FIGURE).parent
    read_only(folder)
    line = failure(project.snakemake("--cores", "1", FIGURE, launcher=powerless))
    folder.chmod(0o755)
    assert f"figures/smoke/{PAPER}: cannot be written" in line
    check_made(project, {path: before[path] for path in before if not path.endswith("pdf")})


@pytest.fixture
def prlimit() -> str:
    """The command that limits what a process may take."""
    if not (command := shutil.which("prlimit")):
        pytest.skip("there is no prlimit")
    return command


def check_no_room(project: Project, launcher: tuple[str, ...]) -> None:
    """Assert that a job without room on the disk says so, and succeeds with room."""
    before = remove(project, TRAIN)
    line = failure(project.snakemake("--cores", "1", TRAIN, launcher=launcher))
    assert TRAIN in line
    assert "no space left on the disk" in line
    check_made(project, before)


def test_full_disk(project):
    here = project.folder / Path(TRAIN).parent
    # Snakemake would remove an empty folder.
    mount = f'mount -t tmpfs -o size=1m none "{here}" && touch "{here}/occupied" && exec "$@"'
    launcher = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
    if not shutil.which("unshare") or subprocess.run([*launcher, "true"]).returncode:
        pytest.skip("no right to mount a small disk")
    check_no_room(project, launcher)


def test_out_of_memory(project, prlimit):
    before = remove(project, STUDY)
    run = project.start("--cores", "1", STUDY)
    # The limit applies to the process that is forked for the job, and to no other.
    subprocess.run([prlimit, "--pid", str(await_fork(run)), "--as=100000000"], check=True)
    text, _ = run.communicate(timeout=120)
    assert run.returncode == 1, text
    assert "results/smoke/logs/fits" in text
    assert not (project.folder / STUDY).exists()
    check_made(project, before)


# Data from outside


def configured(project: Project, folder: Path, source: dict | str) -> list[str]:
    """Arguments that make the project read a data set from a folder."""
    config = folder.parent / "config.yaml"
    data = {"datasets": {"mine": {"source": source, "folder": str(folder)}}}
    config.write_text(yaml.safe_dump(data | {"results": str(folder.parent / "results")}))
    return ["--configfile", "config.yaml", str(config), "--config", "scale=smoke"]


MINE = {
    "name": "mine",
    "width": 2,
    "label_max": 4,
    "splits": {split: f"{split}.txt" for split in ("train", "validation", "test")},
}


def test_read_only_data(project, powerless, read_only, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in MINE["splits"].values():
        (folder / name).write_text("1 qid:1 1:0.5 2:1\n")
    read_only(folder)
    target = f"{tmp_path}/results/smoke/raw/mine/train.parquet"
    over = configured(project, folder, MINE)
    run = project.snakemake(target, "--cores", "1", *over, launcher=powerless)
    assert run.code == 0, run.text
    assert Path(target).exists()


def test_missing_data(project, tmp_path):
    over = configured(project, tmp_path / "data", MINE)
    target = f"{tmp_path}/results/smoke/raw/mine/manifest.json"
    run = project.snakemake(target, "--cores", "1", "--retries", "0", *over)
    assert run.code == 1
    assert f"{tmp_path}/data/train.txt" in run.text
    assert "Traceback" not in run.text


# Make


def test_no_such_make_target(project):
    done = make(project, "figure")
    assert done.returncode == 2
    assert "No rule to make target 'figure'" in done.stderr
    assert not (project.folder / ".venv").exists()


def test_wrong_python(project, tmp_path):
    python = tmp_path / "python3.9"
    python.write_text(
        "#!/bin/sh\n# As the version check does in a Python that is too old.\nexit 1\n"
    )
    python.chmod(0o755)
    done = make(project, "figures", f"PYTHON={python}")
    assert done.returncode == 2
    assert "Python 3.11, 3.12 or 3.13 is needed; name it with make PYTHON=..." in done.stdout
    assert not (project.folder / ".venv").exists()


def test_no_such_target(project):
    run = project.snakemake("--cores", "1", f"figures/smoke/{PAPER}/fig99.csv")
    assert run.code == 1
    assert f"figures/smoke/{PAPER}/fig99.csv" in run.text
    assert not run.jobs


# At last


def test_nothing_of_all_this_has_stuck(project, finished):
    run = project.snakemake("--cores", "2")
    assert run.code == 0, run.text[-5000:]
    assert project.digests() == finished.digests
    assert list((project.folder / "results").rglob(".*")) == []
    assert project.plan() == {}

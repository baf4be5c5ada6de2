"""Faults of a run, made for real. Afterwards a run ends with the same bytes as before.

All tests use one copy of the finished project, one after the other, and mostly its cheapest figure
and the inputs of this figure. A fault leaves its file out: the run of a later test makes it. The
last test makes all that is missing then.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
import yaml

from tests.running import ran
from tests.workflow.project import PAPER, SMOKE, Finished, Project, Run, jobs
from twotowers.splits import SPLITS

# With the tests of the pipeline, since they share the finished project.
pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("pipeline")]

STUDY = f"results/smoke/fits/{PAPER}/appendix_a/2021.parquet"
FIGURE = f"figures/smoke/{PAPER}/appendixA.csv"
TRAIN = "results/smoke/raw/mslr30k/train.parquet"
NOWHERE = "/proc/nowhere"


@pytest.fixture(scope="module")
def project(finished, tmp_path_factory) -> Project:
    """The copy of the project for all faults."""
    return finished.copy(tmp_path_factory.mktemp("faults"))


def remove(project: Project, *paths: str) -> None:
    """Remove files. An earlier fault may have done so."""
    for path in paths:
        (project.folder / path).unlink(missing_ok=True)


def check_made(project: Project, finished: Finished, *paths: str, **options) -> None:
    """Assert that a run makes files, with the same bytes as without faults."""
    run = project.snakemake("--cores", "1", *paths, **options)
    assert run.code == 0, run.text
    check_same(project, finished, *paths)


def check_same(project: Project, finished: Finished, *paths: str) -> None:
    for path in paths:
        made, expected = (each.folder / path for each in (project, finished.project))
        assert made.read_bytes() == expected.read_bytes(), path


def failures(run: Run) -> list[str]:
    """For each job that failed in a run, the line that names the cause."""
    assert run.code == 1, run.text
    assert "Traceback" not in run.text
    return re.findall(r"^\w+ failed: (.*)", run.text, re.MULTILINE)


def make(project: Project, *arguments: str) -> subprocess.CompletedProcess:
    return ran(["make", *arguments], cwd=project.folder, env=project.environment)


def await_job(run: subprocess.Popen) -> int:
    """The process id of the first job of a run. Waits for the job."""
    deadline = time.monotonic() + 120
    while True:
        for child in psutil.Process(run.pid).children():
            with suppress(psutil.Error):
                if any(".snakemake/scripts/" in word for word in child.cmdline()):
                    return child.pid
        assert run.poll() is None, "ended without a job"
        assert time.monotonic() < deadline, "no job began"
        time.sleep(0.05)


def ended(run: subprocess.Popen, timeout: float = 120) -> str:
    """What a run printed up to its end. A run that hangs is killed: later tests would meet it."""
    with run:
        try:
            text, _ = run.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    return text


@pytest.fixture
def heeded_interrupt() -> Iterator[None]:
    """Children obey SIGINT, even if the tests run in the background of a shell and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupt")
def test_ctrl_c(project):
    remove(project, STUDY)
    run = project.start("--cores", "1", STUDY)
    await_job(run)
    os.killpg(run.pid, signal.SIGINT)
    text = ended(run, timeout=60)
    assert run.returncode == 1, text
    assert not (project.folder / STUDY).exists()


def test_a_second_run_is_refused_and_sigterm_lets_a_job_end(project, finished):
    """What was read from a deleted intermediate file is there, so the file is not made again."""
    remove(project, STUDY, FIGURE, TRAIN)
    first = project.start("--cores", "1", FIGURE)
    job = await_job(first)
    os.kill(job, signal.SIGSTOP)
    second = project.snakemake("--cores", "1", FIGURE, "--force")
    first.terminate()
    os.kill(job, signal.SIGCONT)
    text = ended(first, timeout=60)
    assert second.code == 1
    assert "cannot be locked" in second.text
    assert not second.jobs
    assert first.returncode != 0, text
    assert jobs(text) == {"study": {STUDY}}
    assert not (project.folder / FIGURE).exists()
    check_same(project, finished, STUDY)


def test_no_home_and_deleted_intermediates(project, finished):
    remove(project, FIGURE)
    ranked = [f"results/smoke/rankings/{PAPER}/mslr30k/{s}.parquet" for s in ("train", "test")]
    remove(project, *ranked)
    command = make(project, "--dry-run", "figures").stdout
    cache = re.search("XDG_CACHE_HOME='(.*?)' .venv/bin/snakemake", command).group(1)
    assert cache.startswith(str(project.folder))
    made = (TRAIN, *ranked, STUDY, FIGURE)
    check_made(project, finished, *made, HOME=NOWHERE, XDG_CACHE_HOME=cache)
    # The same bytes with their old dates: the last test does not fit everything again.
    for path in (TRAIN, *ranked):
        shutil.copystat(finished.project.folder / path, project.folder / path)


def test_data_sets_of_ones_own(project, tmp_path):
    """One folder lacks a file, and one has a wrong file."""
    texts = {
        "absent": None,
        "wrong": "2 qid:1 1:0.5 2:1\n0 qid:1 1:x 2:0\n",
        "kept": "1 qid:1 1:0.5 2:1\n",
    }
    splits = {split: f"{split}.txt" for split in SPLITS}
    sources = {}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        source = {"name": name, "width": 2, "label_max": 4, "splits": splits}
        sources[name] = {"source": source, "folder": str(tmp_path / name)}
        for file in splits.values() if text else ():
            (tmp_path / name / file).write_text(text)
    raw = tmp_path / "results" / "smoke" / "raw"
    targets = {name: raw / name / "train.parquet" for name in texts}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"datasets": sources, "results": str(tmp_path / "results")}))
    arguments = ("--configfile", "config.yaml", str(config), *SMOKE)
    run = project.snakemake(*map(str, targets.values()), "--cores", "1", *arguments)
    assert [*raw.rglob("*.parquet")] == [targets["kept"]], run.text
    absent, wrong = sorted({*failures(run)})  # A fetch is tried again.
    assert f"{tmp_path}/absent/train.txt" in absent
    assert wrong.startswith(f"InputError: {tmp_path}/wrong/train.txt:2")
    log = tmp_path / "results/smoke/logs/raw/wrong/train.log"
    assert f"failed: {wrong} (log: {log})" in run.text, "at the end, too"
    assert "Traceback" in log.read_text()


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


# At last


def test_kill_9_of_a_job(project):
    remove(project, STUDY)
    run = project.start("--cores", "1", STUDY)
    psutil.Process(await_job(run)).kill()
    text = ended(run)
    assert run.returncode != 0, text


def test_nothing_of_all_this_has_stuck_and_the_folder_may_move(project, finished):
    place = project.folder.with_name("moved here, with spaces")
    project.folder.rename(place)
    moved = replace(project, folder=place)
    # The study's figure is there, so nobody else asks for the study.
    run = moved.snakemake("--cores", "2", "all", STUDY)
    assert run.code == 0, run.text
    assert run.jobs.keys() == {"study", "figure", "table", "claims", "page", "overview", "all"}
    assert run.jobs["study"] == {STUDY}
    check_same(moved, finished, STUDY)
    assert moved.digests() == finished.digests

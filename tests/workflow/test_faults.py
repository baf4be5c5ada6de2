"""Faults of a run, made for real. Afterwards a run ends with the same bytes as before.

All tests use one copy of the finished project, one after the other, and mostly its cheapest figure
and the inputs of this figure. A fault leaves its file out: the run of a later test makes it. The
last test makes all that is missing then.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
import yaml

from tests.running import ran
from tests.workflow.project import PAPER, SMOKE, Finished, Project
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


def failure(run) -> str:
    """The line with the cause of a failed run."""
    assert run.code == 1, run.text
    assert "Traceback" not in run.text
    (line,) = re.findall(r"^\w+ failed: (.*)", run.text, re.MULTILINE)
    return line


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


# Signals


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


def test_sigterm(project, finished):
    remove(project, STUDY, FIGURE)
    run = project.start("--cores", "1", FIGURE)
    await_job(run)
    run.terminate()
    text = ended(run, timeout=60)
    assert run.returncode != 0, text
    assert not (project.folder / FIGURE).exists()
    check_same(project, finished, STUDY)


# Two runs


def test_two_runs_in_one_folder(project, finished):
    remove(project, STUDY)
    first = project.start("--cores", "1", STUDY)
    job = await_job(first)
    os.kill(job, signal.SIGSTOP)
    second = project.snakemake("--cores", "1", FIGURE, "--force")
    os.kill(job, signal.SIGCONT)
    text = ended(first)
    assert second.code == 1
    assert "cannot be locked" in second.text
    assert not second.jobs
    assert first.returncode == 0, text
    check_same(project, finished, STUDY)


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


def test_read_only_figures(project, powerless, read_only):
    remove(project, *(FIGURE.replace("csv", ending) for ending in ("pdf", "svg", "csv")))
    folder = (project.folder / FIGURE).parent
    read_only(folder)
    line = failure(project.snakemake("--cores", "1", FIGURE, launcher=powerless))
    folder.chmod(0o755)
    assert f"figures/smoke/{PAPER}: cannot be written" in line


def test_full_disk(project):
    here = project.folder / Path(TRAIN).parent
    # Snakemake would remove an empty folder.
    mount = f'mount -t tmpfs -o size=1m none "{here}" && touch "{here}/occupied" && exec "$@"'
    launcher = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
    if not shutil.which("unshare") or subprocess.run([*launcher, "true"]).returncode:
        pytest.skip("no right to mount a small disk")
    remove(project, TRAIN)
    line = failure(project.snakemake("--cores", "1", TRAIN, launcher=launcher))
    assert TRAIN in line
    assert "no space left on the disk" in line


def test_out_of_memory(project):
    # The study itself sets the limit. From outside, the limit may hit a thread that starts, and one
    # that gets no memory then lets Python wait for ever.
    def too_large(text: str) -> str:
        limited = (
            "    import resource\n"
            "    resource.setrlimit(resource.RLIMIT_AS, (100_000_000, 100_000_000))\n"
            "    np.ones(100_000_000)\n"
        )
        return text.replace("    frames = [\n", f"{limited}    frames = [\n", 1)

    remove(project, STUDY)
    with project.edited(f"papers/{PAPER}/studies/appendix_a.py", too_large):
        run = project.start("--cores", "1", STUDY)
        text = ended(run)
    assert run.returncode == 1, text
    (log,) = set(re.findall(r"results/smoke/logs/fits/.*\.log", text))
    assert "Unable to allocate" in (project.folder / log).read_text()
    assert not (project.folder / STUDY).exists()


# What is missing


def test_no_home_and_deleted_intermediates(project, finished):
    remove(project, TRAIN, FIGURE)
    assert "generate_standin" not in project.plan()
    ranked = [f"results/smoke/rankings/{PAPER}/mslr30k/{s}.parquet" for s in ("train", "test")]
    remove(project, *ranked)
    command = make(project, "--dry-run", "figures").stdout
    cache = re.search("XDG_CACHE_HOME='(.*?)' .venv/bin/snakemake", command).group(1)
    assert cache.startswith(str(project.folder))
    made = (TRAIN, *ranked, STUDY, FIGURE)
    check_made(project, finished, *made, HOME=NOWHERE, XDG_CACHE_HOME=cache)


# Data from outside


@dataclass(frozen=True)
class Own:
    """A data set: its files are in `data`. With `arguments`, Snakemake writes to `results`."""

    data: Path
    results: Path
    arguments: tuple[str, ...]

    def write(self, text: str) -> None:
        for split in SPLITS:
            (self.data / f"{split}.txt").write_text(text)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """One folder for the tests of data sets from files, which so share a plan."""
    return tmp_path_factory.mktemp("own")


@pytest.fixture
def own(place) -> Iterator[Own]:
    """A data set whose files are to be written. Nothing is made of it."""
    data, results = place / "data", place / "results"
    splits = {split: f"{split}.txt" for split in SPLITS}
    source = {"name": "mine", "width": 2, "label_max": 4, "splits": splits}
    datasets = {"mine": {"source": source, "folder": str(data)}}
    config = place / "config.yaml"
    config.write_text(yaml.safe_dump({"datasets": datasets, "results": str(results)}))
    data.mkdir()
    yield Own(data, results, ("--configfile", "config.yaml", str(config), *SMOKE))
    for folder in (data, results):
        shutil.rmtree(folder)


def test_missing_data(project, own):
    target = f"{own.results}/smoke/raw/mine/manifest.json"
    run = project.snakemake(target, "--cores", "1", "--retries", "0", *own.arguments)
    assert run.code == 1
    assert f"{own.data}/train.txt" in run.text
    assert "Traceback" not in run.text


def test_read_only_data(project, powerless, own, read_only):
    own.write("1 qid:1 1:0.5 2:1\n")
    read_only(own.data)
    target = own.results / "smoke" / "raw" / "mine" / "train.parquet"
    run = project.snakemake(str(target), "--cores", "1", *own.arguments, launcher=powerless)
    assert run.code == 0, run.text
    assert target.exists()


def test_a_failure_says_its_cause_and_its_log_where_it_happens_and_at_the_end(project, own):
    own.write("2 qid:1 1:0.5 2:1\n0 qid:1 1:x 2:0\n")
    target = f"{own.results}/smoke/raw/mine/train.parquet"
    run = project.snakemake(target, "--cores", "1", *own.arguments)
    line = failure(run)
    assert line.startswith(f"InputError: {own.data}/train.txt:2")
    log = f"{own.results}/smoke/logs/raw/mine/train.log"
    assert f"failed: {line} (log: {log})" in run.text
    assert "Traceback" in Path(log).read_text()
    assert list(own.results.rglob("*.parquet")) == []


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


# At last


def test_kill_9_of_a_job(project):
    remove(project, STUDY)
    run = project.start("--cores", "1", STUDY)
    psutil.Process(await_job(run)).kill()
    text = ended(run)
    assert run.returncode != 0, text


def test_nothing_of_all_this_has_stuck_and_the_folder_may_move(project, finished):
    run = project.snakemake("--cores", "2")
    assert run.code == 0, run.text
    assert project.digests() == finished.digests
    check_same(project, finished, STUDY)
    place = project.folder.with_name("moved here, with spaces")
    project.folder.rename(place)
    assert replace(project, folder=place).plan() == {}

"""One run at a time; nothing is left to unlock; jobs end with their run."""

import os
import signal
import subprocess
import sys
import time

import pytest

from twotowers.errors import InputError
from twotowers.workflow import processes

HOLD = (
    "import sys, time; from twotowers.workflow.processes import only_run; only_run(*sys.argv[1:]); "
    "print('holds', flush=True); time.sleep(60)"
)
JOB = (
    "import sys, time; from twotowers.workflow.processes import end_with_run; end_with_run(); "
    "print('works', flush=True); time.sleep(60)"
)


def start(code, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), **environment},
    )


@pytest.fixture
def folders(tmp_path, monkeypatch):
    held = []
    monkeypatch.setattr(processes, "_held", held)
    yield tmp_path / "results", tmp_path / "figures"
    for lock in held:
        lock.close()


def test_a_second_run_is_refused_and_a_killed_one_leaves_nothing_to_unlock(folders):
    with start(HOLD, *folders) as first:
        assert first.stdout.readline() == "holds\n"
        with pytest.raises(InputError, match=f"process {first.pid} on .* is working there"):
            processes.only_run(*folders)
        first.kill()
    processes.only_run(*folders)
    assert (folders[0] / "run.lock").read_text().startswith(f"process {os.getpid()} on ")


def test_other_folders_are_other_runs(folders, tmp_path):
    processes.only_run(*folders)
    processes.only_run(tmp_path / "others", folders[1])


def test_a_file_system_without_locks_asks_nothing(folders, monkeypatch):
    def refuse(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(processes.fcntl, "flock", refuse)
    processes.only_run(*folders)
    processes.only_run(*folders)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "results").touch()
    with pytest.raises(InputError, match="results: cannot be written: File exists"):
        processes.only_run(tmp_path / "results", tmp_path / "figures")


def test_a_job_ends_with_its_run():
    with start("import time; time.sleep(60)") as run:
        with start(JOB, **{processes.RUN: str(run.pid)}) as job:
            assert job.stdout.readline() == "works\n"
            time.sleep(3 * processes.POLL)
            assert job.poll() is None
            run.kill()
            run.wait()
            assert job.wait(30) == -signal.SIGKILL
        # A job that begins now does nothing.
        with start(JOB, **{processes.RUN: str(run.pid)}) as late:
            assert late.wait(30) == -signal.SIGKILL
            assert late.stdout.read() == ""

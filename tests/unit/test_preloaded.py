"""Jobs that a preloaded process runs: what they see, how they end, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.runner import PRELOADED
from tests.running import ran
from twotowers.root import ROOT
from twotowers.workflow.preloaded import ADDRESS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux preloads")

SERVER = """
import sys
from twotowers.workflow import preloaded
preloaded.LARGEST = 300_000_000
preloaded.serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
"""
"""As `python -m twotowers.workflow.preloaded`, but workers end that have grown to less."""

# The module that the process imports, and of which it tells its forks.
MODULE = "import os\nWHO = os.getpid()\nseen = []\n"
JOB = """
import sys
sys.path.insert(0, {root!r})
from twotowers.workflow.preloaded import hand_over
if "heavy" not in sys.modules:
    hand_over(sys.argv[0])
import os, heavy
{body}
"""


@pytest.fixture
def workers() -> int:
    """How many workers there are."""
    return 1


@pytest.fixture
def server(tmp_path, workers):
    """A process with `heavy` imported; yields the environment of its jobs."""
    (tmp_path / "heavy.py").write_text(MODULE)
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    # Sockets have short paths, so the folder is relative.
    (tmp_path / "own").mkdir()
    environment = os.environ | {"PYTHONPATH": path, ADDRESS: f"own/socket:{sys.prefix}"}
    command = [sys.executable, "-c", SERVER, "own/socket", str(workers), "heavy"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "own" / "socket").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with process:
        yield process, environment
        process.kill()


def job(folder, environment, body: str, **options) -> subprocess.Popen:
    """Start a job in a process of its own."""
    script = folder / "job.py"
    script.write_text(JOB.format(root=str(ROOT), body=body))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, str(script)]
    return subprocess.Popen(command, cwd=folder, env=environment, **pipes, **options)


SEEN = (
    "heavy.seen.append(1)\n"
    "print(heavy.WHO, os.getpid(), len(heavy.seen), __name__, len(sys.path))\n"
    "print('trouble', file=sys.stderr)"
)


def test_a_worker_runs_one_job_after_another_with_its_own_streams(server, tmp_path):
    process, environment = server
    ran_in, paths = set(), set()
    for number in (1, 2, 3):
        out, err = job(tmp_path, environment, SEEN).communicate()
        imported_by, worker, seen, name, path = out.split()
        assert int(imported_by) == process.pid != int(worker)
        assert (int(seen), name, err) == (number, "__main__", "trouble\n")
        ran_in.add(worker)
        paths.add(path)
    assert len(ran_in) == len(paths) == 1


@pytest.mark.parametrize("workers", [2])
def test_two_jobs_at_once_have_a_worker_each(server, tmp_path):
    body = "print(os.getpid(), flush=True); sys.stdin.readline()"
    both = [job(tmp_path, server[1], body, stdin=subprocess.PIPE) for _ in range(2)]
    assert len({each.stdout.readline() for each in both}) == 2
    for each in both:
        each.communicate("go on\n")
        assert each.returncode == 0


@pytest.mark.parametrize("body", ["sys.exit(1)", "heavy.seen.append(b'1' * 300_000_000)"])
def test_after_a_failure_or_if_it_has_grown_a_fresh_fork_takes_its_place(server, tmp_path, body):
    job(tmp_path, server[1], f"heavy.seen.append(1); {body}").communicate()
    out, _ = job(tmp_path, server[1], SEEN).communicate()
    assert out.split()[2] == "1"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("pass", 0, ""),
        ("sys.exit(1)", 1, ""),
        ("raise ValueError('wrong')", 1, "ValueError: wrong"),
        ("os.kill(os.getpid(), 9)", 1, ""),
    ],
)
def test_a_job_ends_as_its_script_does(server, tmp_path, body, status, message):
    ended = job(tmp_path, server[1], body)
    _, err = ended.communicate()
    assert ended.returncode == status
    assert message in err


def test_a_job_that_is_killed_takes_its_fork_along(server, tmp_path):
    body = "print(os.getpid(), flush=True); import time; time.sleep(600)"
    running = job(tmp_path, server[1], body)
    fork = int(running.stdout.readline())
    running.send_signal(signal.SIGKILL)
    running.communicate()
    await_end(fork)


def await_end(process: int) -> None:
    """Wait until a process has ended."""
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{process}"):
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.05)


def test_the_process_ends_with_the_run(server, tmp_path):
    process, environment = server
    out, _ = job(tmp_path, environment, SEEN).communicate()
    process.stdin.close()
    assert process.wait(60) == 0
    await_end(int(out.split()[1]))
    assert not (tmp_path / "own").exists(), "nothing is left behind"


def test_without_the_process_a_job_runs_by_itself(server, tmp_path):
    process, environment = server
    process.kill()
    process.wait()
    body = "print(heavy.WHO == os.getpid())"
    for address in (environment[ADDRESS], f"nowhere:{sys.prefix}", "own/socket:/of/conda", ""):
        out, err = job(tmp_path, environment | {ADDRESS: address}, body).communicate()
        assert (out, err) == ("True\n", "")


def test_what_is_preloaded_can_be_forked():
    """It starts neither threads nor JAX's backends: a fork would have neither.

    jemalloc, the allocator of pyarrow, has a thread and starts it again in a fork.
    """
    code = (
        "import importlib, sys\n"
        "from pathlib import Path\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "from jax._src import xla_bridge\n"
        "names = {path.read_text().strip() for path in Path('/proc/self/task').glob('*/comm')}\n"
        "print(names - {'jemalloc_bg_thd'}, xla_bridge.backends_are_initialized())"
    )
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = ran([sys.executable, "-c", code, *PRELOADED], cwd=ROOT, env=os.environ | threads)
    assert run.stdout == f"{{{Path(sys.executable).name!r}}} False\n", run.stderr

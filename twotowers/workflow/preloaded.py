"""A process that has imported the libraries already, and forks workers to run the jobs of a run.

Importing JAX, flax and pandas costs a job more than a small fit does, and tracing a fit's program
as much again. So a run starts this process once. A job's own process hands its script over and
waits. A worker runs the script with the job's streams, and ends when the job's own process ends
too early. It runs one job after another, so that a program is traced once for all seeds. After a
failure, or if it has grown, a fresh fork takes its place.

Nothing depends on it: where it cannot be reached (on another machine of a cluster, in a conda
environment, not on Linux), a job imports what it needs.

Standard library only, so that jobs start fast and a Snakefile can use it.
"""

import contextlib
import ctypes
import gc
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

ADDRESS = "TWO_TOWERS_PRELOADED"
"""The environment variable with the address of the process's socket, and its environment."""

LARGEST = 1_500_000_000
"""Bytes of memory with which a worker takes no further job."""
PAUSE = 0.1
"""Seconds after which a worker that has ended is replaced."""
DEATH_SIGNAL = 1
"""The option of Linux's `prctl` that ends a process with its parent."""

_started = []


def start(modules: Sequence[str], workers: int) -> None:
    """Start the process, which imports modules, and put its address in the environment of jobs."""
    # A fork of a process with Apple's frameworks may hang.
    if sys.platform != "linux":
        return
    # A path of a socket is short, and in a folder that nobody else may enter.
    address = f"{tempfile.mkdtemp(prefix='two-towers-')}/socket"
    os.environ[ADDRESS] = f"{address}:{sys.prefix}"
    # Its stdin ends with this process, in whatever way, and it ends with its stdin. It has a
    # session of its own, since Ctrl-C is for jobs. Forks without threads but jemalloc's are safe.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", __spec__.name, address]
    command += [str(workers), *modules]
    _started.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))


def hand_over(script: str) -> None:
    """Let the preloaded process run a script, and end as the script ends.

    Returns only if there is no such process, before anything of the script ran.
    """
    address, _, environment = os.environ.get(ADDRESS, "").partition(":")
    if environment != sys.prefix:
        return
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
        except OSError:
            return
        socket.send_fds(connection, [os.fsencode(script)], [0, 1, 2])
        # Nothing comes back from a job that was killed. Its log says how far it got.
        failed = connection.recv(1) != b"\0"
    os._exit(failed)


def serve(address: str, workers: int, modules: Sequence[str]) -> None:
    """Import modules, then keep some workers, which take what jobs hand over, until stdin ends."""
    with socket.socket(socket.AF_UNIX) as server:
        # Jobs that come too early, or while all workers are busy, wait in line.
        server.bind(address)
        server.listen(64)
        for name in modules:
            import_module(name)
        # Memory that no collection touches is shared by all forks.
        gc.collect()
        gc.freeze()
        forks = set()
        while not select.select([sys.stdin], [], [], PAUSE)[0]:
            forks -= {fork for fork in forks if os.waitpid(fork, os.WNOHANG)[0]}
            while len(forks) < workers:
                fork = os.fork()
                if fork == 0:
                    _work(server)
                forks.add(fork)
    shutil.rmtree(os.path.dirname(address))


def _work(server: socket.socket) -> NoReturn:
    """Run one job after another, as they come. A worker must not outlive its parent."""
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
    failed = False
    while not failed and _resident() <= LARGEST:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            failed = _run(connection)
            connection.sendall(bytes([failed]))
            connection.shutdown(socket.SHUT_RDWR)
    os._exit(failed)


def _run(connection: socket.socket) -> bool:
    """Run the script that a job hands over with its streams, and say whether it failed."""
    failed, path, ended = True, list(sys.path), threading.Event()
    try:
        script, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        _use(streams)
        threading.Thread(target=_end_with, args=[connection, ended], daemon=True).start()
        sys.argv = [os.fsdecode(script)]
        runpy.run_path(sys.argv[0], run_name="__main__")
        failed = False
    except SystemExit:
        """The script has said why."""
    except BaseException:
        traceback.print_exc()
    finally:
        sys.path[:] = path
        ended.set()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        # Whoever reads the job's streams waits until nobody has them.
        _use([os.open(os.devnull, os.O_RDWR) for _ in range(3)])
    return failed


def _use(streams: Sequence[int]) -> None:
    """Make descriptors this process's stdin, stdout and stderr."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def _end_with(connection: socket.socket, ended: threading.Event) -> None:
    """End this process if the job's own process, the other end, ends before the job does."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    if not ended.is_set():
        os.kill(os.getpid(), signal.SIGKILL)


def _resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    # Without the end of the interpreter: libraries would report what `gc.freeze` keeps as leaks.
    os._exit(0)

"""A process that has imported the libraries already, and forks to run each job of a run.

Importing JAX, flax and pandas costs a job more than a small fit does. So a run starts this process
once. A job's own process finds it, hands its script over and waits. The fork runs the script with
the job's environment, folder and streams, and ends when the job's own process ends. Every fork
begins in the same state, so that no job sees what another one did.

It is a shortcut and nothing depends on it: where it cannot be reached (on another machine of a
cluster, in a conda environment, not on Linux), a job imports what it needs.

Standard library only, so that jobs start fast and a Snakefile can use it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
import zlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

FOLDER = "TWO_TOWERS_PRELOADED"
"""The environment variable that names the folder of the process's socket."""

WAITING = 64
"""How many jobs may wait until the process has imported everything."""

_started = []


def start(modules: Sequence[str]) -> None:
    """Start the process, and name its folder in the environment of the jobs to come.

    Args:
        modules: what it imports: the scripts of jobs, and what they import late.
    """
    # A fork of a process with Apple's frameworks may hang.
    if sys.platform != "linux":
        return
    # Paths of sockets are short, and nobody can copy one. So it is not in the project's folder.
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="two-towers-")
    # Its stdin ends with this process, in whatever way, and it ends with its stdin.
    command = [sys.executable, "-m", __spec__.name, *modules]
    _started.append(subprocess.Popen(command, stdin=subprocess.PIPE))


def hand_over(script: str) -> None:
    """Let the preloaded process run a script, and end as the script ends.

    Returns only if there is no such process, before anything of the script ran.

    Args:
        script: the file of the script.
    """
    if FOLDER not in os.environ:
        return
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(_address())
        except OSError:
            return
        job = {"script": script, "folder": os.getcwd(), "environment": dict(os.environ)}
        request = json.dumps(job).encode()
        # A message with open files has room for little more: the length goes with them.
        socket.send_fds(connection, [len(request).to_bytes(8)], [0, 1, 2])
        connection.sendall(request)
        status = connection.recv(1)
    # Nothing comes back from a job that was killed. Its log says how far it got.
    os._exit(status[0] if status else 1)


def serve(modules: Sequence[str]) -> None:
    """Import modules, then run what jobs hand over, until stdin ends."""
    # Ctrl-C is for jobs. This process ends with the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        # Jobs that come too early wait in line while modules are imported.
        server.bind(_address())
        server.listen(WAITING)
        for name in modules:
            import_module(name)
        # Memory that no collection touches is shared by all forks.
        gc.collect()
        gc.freeze()
        # The kernel forgets forks that ended.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            with connection:
                if _fork() == 0:
                    server.close()
                    _run(connection)
    os.unlink(_address())
    os.rmdir(os.environ[FOLDER])


def _fork() -> int:
    """Fork, without Python's warning of threads: the only one is jemalloc's, which can bear it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run(connection: socket.socket) -> NoReturn:
    """Run the script that a job hands over, send its exit status, and end this process.

    Whatever happens, a fork must not go on with what its parent does, or end as its parent would.
    """
    status = 1
    try:
        script = _become(connection)
        runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            connection.sendall(bytes([status]))
        os._exit(status)


def _become(connection: socket.socket) -> str:
    """Take over a job's streams, environment and folder; returns its script."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    job = json.loads(connection.recv(int.from_bytes(length), socket.MSG_WAITALL))
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.argv = [job["script"]]
    threading.Thread(target=_end_with, args=[connection], daemon=True).start()
    return job["script"]


def _end_with(connection: socket.socket) -> None:
    """End this process when the job's own process, the other end, has ended."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _address() -> str:
    """The socket of this run and this environment: jobs of other environments do not find it."""
    environment = zlib.crc32(sys.prefix.encode())
    return str(Path(os.environ[FOLDER]) / f"preloaded-{environment:08x}.sock")


if __name__ == "__main__":
    serve(sys.argv[1:])
    # Without the end of the interpreter: libraries would report what `gc.freeze` keeps as leaks.
    os._exit(0)

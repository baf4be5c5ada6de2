"""A process that has imported the libraries already, and forks to run each job of a run.

Importing JAX, flax and pandas costs a job more than a small fit does. So a run starts this process
once. A job's own process hands its script over and waits. The fork runs the script with the job's
streams, and ends when the job's own process ends. Every fork begins in the same state, so that no
job sees what another one did.

Nothing depends on it: where it cannot be reached (on another machine of a cluster, in a conda
environment, not on Linux), a job imports what it needs.

Standard library only, so that jobs start fast and a Snakefile can use it.
"""

from __future__ import annotations

import contextlib
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

_started = []


def start(modules: Sequence[str]) -> None:
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
    _started.append(
        subprocess.Popen([*command, *modules], stdin=subprocess.PIPE, start_new_session=True)
    )


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


def serve(address: str, modules: Sequence[str]) -> None:
    """Import modules, then run what jobs hand over, until stdin ends."""
    with socket.socket(socket.AF_UNIX) as server:
        # Jobs that come too early wait in line while modules are imported.
        server.bind(address)
        server.listen(64)
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
                if os.fork() == 0:
                    server.close()
                    _run(connection)
    shutil.rmtree(os.path.dirname(address))


def _run(connection: socket.socket) -> NoReturn:
    """Run the script that a job hands over with its streams, say whether it failed, and end.

    Whatever happens, a fork must not go on with what its parent does, or end as its parent would.
    """
    failed = True
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        script, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        threading.Thread(target=_end_with, args=[connection], daemon=True).start()
        sys.argv = [os.fsdecode(script)]
        runpy.run_path(sys.argv[0], run_name="__main__")
        failed = False
    except SystemExit:
        """The script has said why."""
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            connection.sendall(bytes([failed]))
        os._exit(failed)


def _end_with(connection: socket.socket) -> None:
    """End this process when the job's own process, the other end, has ended."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
    # Without the end of the interpreter: libraries would report what `gc.freeze` keeps as leaks.
    os._exit(0)

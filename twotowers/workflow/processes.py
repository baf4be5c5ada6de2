"""Only one run works in a folder of results, and no job outlives its run.

Standard library only, so that a Snakefile can use it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
import time
from pathlib import Path

from twotowers.errors import InputError
from twotowers.files.artefacts import put_in_order

LOCK = "run.lock"
RUN = "TWO_TOWERS_RUN"
POLL = 0.5  # seconds. Planning takes longer, so a new run meets no job of a dead one.
_held = []


def only_run(results: str | Path, figures: str | Path) -> None:
    """Make this process the only run in a folder of results until it ends.

    The kernel holds the lock and releases it when the process dies. So nothing needs unlocking
    after a kill or a power cut. Half-written files of a dead run are removed. A file system
    without locks is used without one.
    """
    path = Path(results) / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}. Nothing was run",
            path=results,
            expected="a folder that you may write to; the key `results` in config.yaml names it",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with lock:
            lock.seek(0)
            other = lock.read() or "another run"
        raise InputError(
            f"{other} is working there. Nothing was run; let it finish, or stop it", path=results
        ) from None
    except OSError:
        pass
    _held.append(lock)
    # This text helps the next run. If the disk is full, the run's own files will say so.
    with contextlib.suppress(OSError):
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}, since {time.strftime('%c')},")
        lock.flush()
    for folder in (results, figures):
        put_in_order(folder)


def end_with_run() -> None:
    """End this process, a job, as soon as the run that started it has ended.

    Otherwise a job of a killed run would go on beside those of the next run. The Snakefile sets
    the environment variable RUN to the process id of the run. Without it nothing happens.
    """
    if (run := os.environ.get(RUN)) is None:
        return
    _end_without(int(run))

    def watch():
        while True:
            time.sleep(POLL)
            _end_without(int(run))

    threading.Thread(target=watch, daemon=True).start()


def _end_without(run: int) -> None:
    try:
        os.kill(run, 0)
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGKILL)
    except PermissionError:
        """The process exists and belongs to another user."""

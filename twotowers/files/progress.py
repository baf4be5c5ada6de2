"""What takes its time: commands say it on the standard error, from the fifth second on."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

SILENT = 5.0
"""Seconds without a word."""
_step = ["starting"]


def doing(what: str) -> None:
    """Say what begins now. Only a command shows it, and only if it takes long."""
    _step[0] = what


@contextmanager
def shown() -> Iterator[None]:
    """Say every few seconds what is being done, and for how long so far."""
    ended, start = Event(), time.monotonic()

    def run() -> None:
        said = ""
        while not ended.wait(SILENT):
            if _step[0] != said:
                said = _step[0]
                print(f"{time.monotonic() - start:.0f} s: {said}", file=sys.stderr, flush=True)

    _step[0] = "starting"
    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

"""What commands print."""

from __future__ import annotations

import os
import sys


def show(*lines: str) -> None:
    """Print lines. Whoever has closed the pipe, as `head` does, has seen enough."""
    try:
        if lines:
            print(*lines, sep="\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

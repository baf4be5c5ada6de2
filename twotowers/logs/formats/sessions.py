"""Reader of our own sessions files (`twotowers.logs.sessions`)."""

from __future__ import annotations

from pathlib import Path

from twotowers.logs.sessions import REQUIRED, Stream, check_free, read_sessions, schema_of, seen_in

LAYOUT = "our own sessions file"


def read(path: str | Path) -> Stream:
    """Read the pages of a file that `twotowers.logs.sessions.write_sessions` wrote."""
    names = [each for each in schema_of(path).names if each not in (*REQUIRED, "user", "position")]
    check_free(names)
    return Stream(read_sessions(path), seen_in(path))

"""Reader of our own sessions files (`twotowers.logs.sessions`)."""

from pathlib import Path

from twotowers.logs.sessions import Stream, read_sessions, seen_in

LAYOUT = "our own sessions file"


def read(path: str | Path) -> Stream:
    """Read the pages of a file that `twotowers.logs.sessions.write_sessions` wrote."""
    return Stream(read_sessions(path), seen_in(path))

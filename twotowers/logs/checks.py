"""What is checked of a log, and of where answers go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twotowers.errors import InputError
from twotowers.files.artefacts import check_target
from twotowers.files.frames import Frame, Source
from twotowers.logs.layouts import parts_of
from twotowers.logs.log import Log

MOST_POSITIONS = 1000
"""Memory of a fit grows with the square of the positions."""


def check_out(
    source: str | Source, out: str | Path, *endings: str, beside: Sequence[str | Path] = ()
) -> None:
    """InputError if `out` or files beside it cannot be written, or would replace one of the log's.

    `out` has one of `endings`; without any, every ending will do.
    """
    files = parts_of(source if isinstance(source, Frame) else Path(source))
    check_target(out, files, *endings)
    for each in beside:
        check_target(each, files)


def check_pages_of(log: Log, source: Source) -> None:
    """Raise InputError if the log has no page, or if a page has no document or too many."""
    for each in log.blocks:
        wrong = np.flatnonzero((each.lengths < 1) | (each.lengths > MOST_POSITIONS))
        if len(wrong):
            raise InputError(
                f"page {each.before + wrong[0] + 1}: it shows {each.lengths[wrong[0]]} documents",
                path=source,
                field="documents",
                expected=f"1 to {MOST_POSITIONS}",
            )
    if not log.pages:
        raise InputError("the log is empty", path=source)


def bytes_of(memory: str) -> int:
    """A size such as '2GB', in bytes."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b", memory.strip().lower())
    if match is None:
        raise InputError(f"{memory!r}", field="memory", expected="a size such as 2GB")
    return max(int(float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")), 1)

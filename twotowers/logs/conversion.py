"""Click logs in any format -> sessions and cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.frames import Source
from twotowers.files.tables import opened
from twotowers.logs.opening import FORMATS, open_log
from twotowers.logs.sessions import seen_in, write_sessions
from twotowers.logs.warehouse import MEMORY, add_up_cells, count_sessions


def to_sessions(path: Source, out: str | Path, *, format: str, **settings: Any) -> int:
    """A log in any format -> sessions file; the number of pages."""
    if format in FORMATS and FORMATS[format].counted:
        raise InputError(
            f"a log in format {format!r} is counted, so its pages are not known",
            path=path,
            field="format",
            expected="a log of pages, or a cells file as output",
        )
    if format in FORMATS and "bias" not in FORMATS[format].settings:
        settings.pop("bias", None)  # Its pages keep all of their columns.
    log = open_log(path, format, **settings)
    return write_sessions(out, log.batches, log.seen)


def to_cells(
    path: Source,
    out: str | Path,
    *,
    format: str,
    bias: Sequence[str] = (),
    memory: str = MEMORY,
    threads: int | None = None,
    **settings: Any,
) -> int:
    """A log in any format -> cells file; the number of cells.

    Args:
        path: the file.
        out: the parquet file to write.
        format: one of `FORMATS`.
        bias: bias features that tell cells apart.
        memory, threads: see `twotowers.logs.warehouse.count_sessions`.
        settings: of the format's reader.
    """
    has_bias = format in FORMATS and "bias" in FORMATS[format].settings
    log = open_log(path, format, **settings, **({"bias": bias} if bias and has_bias else {}))
    if FORMATS[format].counted:
        return add_up_cells(log.batches, out, memory=memory, threads=threads, seen=log.seen)
    return count_sessions(
        log.batches, out, bias=bias, memory=memory, threads=threads, seen=log.seen
    )


def to_log(path: str | Path, out: str | Path, *, format: str, **settings: Any) -> int:
    """A log in any format -> the log of a data set; the number of cells.

    Args:
        path: the file.
        out: the parquet file to write: query, document, position, the chosen bias features,
            impressions, clicks. The log is one part: splits and lanes are left out, and cells
            that differ in nothing else are added up. The other counts of the reader are in the
            file's metadata.
        format: one of `FORMATS`.
        settings: of the format's reader, or of `to_cells`.

    Examples:
        >>> names = "split,query,document,position,impressions,clicks"
        >>> _ = Path("cells.csv").write_text(names + "\\na,7,x,1,20,3\\nb,7,x,1,10,0\\n")
        >>> to_log("cells.csv", "log.parquet", format="cells")
        1
    """
    with atomic(out) as temporary:
        to_cells(path, temporary, format=format, **settings)
        keys = ["query", "document", "position", *(settings.get("bias") or ())]
        # The input file stays until the file that replaces it is whole.
        with opened(temporary) as cells:
            batches = cells.iter_batches(columns=[*keys, "impressions", "clicks"])
            budget = {name: settings[name] for name in ("memory", "threads") if name in settings}
            return add_up_cells(batches, temporary, seen=seen_in(temporary), **budget)

"""The formats of click logs by name, and their conversion to sessions and cells."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import atomic
from twotowers.files.frames import Source
from twotowers.files.tables import opened
from twotowers.logs.baidu import read_baidu
from twotowers.logs.counted import read_cells
from twotowers.logs.pages import read_pages
from twotowers.logs.rows import read_rows
from twotowers.logs.sessions import Stream, read_sessions, seen_in, write_sessions
from twotowers.logs.vectors import read_vectors
from twotowers.logs.warehouse import MEMORY, add_up_cells, count_sessions
from twotowers.logs.wscd import read_wscd
from twotowers.logs.yandex import read_yandex


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        read: path, settings -> a `Stream` of pages, or of cells.
        what: a row of the file, in words.
        counted: whether a file holds cells instead of pages.
    """

    read: Callable[..., Stream]
    what: str
    counted: bool = False


def _read_artefact(path: str | Path) -> Stream:
    return Stream(read_sessions(path), seen_in(path))


FORMATS = {
    "sessions": Format(_read_artefact, "our own sessions file"),
    "pages": Format(read_pages, "a row per result page, with lists of documents and clicks"),
    "rows": Format(read_rows, "a row per shown document"),
    "vectors": Format(read_vectors, "a row per result page, with a vector per document"),
    "baidu": Format(read_baidu, "a row per shown document, with tokens and features"),
    "cells": Format(read_cells, "a row per query, document and position, counted", counted=True),
    "yandex": Format(read_yandex, "PyClick's trainSample, pages separated by ;"),
    "wscd": Format(read_wscd, "the text of WSCD 2012: lines of pages and of clicks"),
}


def open_log(path: Source, format: str, **settings: Any) -> Stream:
    """A log in any format, as a stream of batches.

    Args:
        path: the file.
        format: one of `FORMATS`.
        settings: of its reader. None is the default.

    Raises:
        InputError: the format is unknown, or does not have a setting.
    """
    if format not in FORMATS:
        raise InputError(f"{format!r}", field="format", expected=nearest(format, FORMATS))
    read = FORMATS[format].read
    settings = {name: value for name, value in settings.items() if value is not None}
    known = [name for name in inspect.signature(read).parameters if name != "path"]
    for name in settings:
        if name not in known:
            raise InputError(
                f"format {format!r} has no such setting",
                field=name,
                expected=", ".join(known) or "none",
            )
    return read(path, **settings)


def to_sessions(path: Source, out: str | Path, *, format: str, **settings: Any) -> int:
    """A log in any format -> sessions file; the number of pages.

    Raises:
        InputError: see the format's reader; also for a log that is counted already.
    """
    if format in FORMATS and FORMATS[format].counted:
        raise InputError(
            f"a log in format {format!r} is counted, so its pages are not known",
            path=path,
            field="format",
            expected="a log of pages, or a cells file as output",
        )
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
    has_bias = format in FORMATS and "bias" in inspect.signature(FORMATS[format].read).parameters
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

    Raises:
        InputError: see the format's reader.

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

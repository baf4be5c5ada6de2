"""Count a click log of any format and size into cells, or convert it.

    twotowers count LOG --out cells.parquet
    twotowers count LOG --to sessions --out sessions.parquet

A cell is a query, a document and a position, with its impressions and clicks. The format and the
columns are recognised; `--format` and `--column query=query_id` say them. docs/logs.md describes
the formats. The exit status is 0, or 2 on bad input.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from twotowers.commands.options import FORMAT_HELP, add_reader_options, log_of, show
from twotowers.errors import InputError
from twotowers.files.artefacts import check_target
from twotowers.logs.click_log import KNOWN, ClickLog
from twotowers.logs.counted import CELL, write_counts
from twotowers.logs.formats.wscd import write_wscd
from twotowers.logs.layouts import parts_of
from twotowers.logs.sessions import check_free, seen_lines

TARGETS = ("cells", "sessions", "wscd")
MEMORY = "3GB"
EPILOG = FORMAT_HELP


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    parser.add_argument("--out", required=True, help="the file to write")
    parser.add_argument("--to", choices=TARGETS, default="cells", help="what to write (cells)")
    parser.add_argument(
        "--bias", nargs="+", metavar="COLUMN", help="bias features that tell cells apart"
    )
    parser.set_defaults(memory=MEMORY)


def run(options: argparse.Namespace) -> int:
    """Count or convert the log; returns the exit status."""
    out = Path(options.out)
    endings = () if options.to == "wscd" else (".parquet",)
    check_target(out, parts_of(Path(options.log)), *endings)
    log, bias = log_of(options), options.bias or ()
    held = log.holding(bias)
    if options.to == "cells":
        portions = held.portions(cell_columns(log, bias))
        written = f"{write_counts(out, portions, log.seen):,} cells"
    elif options.to == "sessions":
        written = f"{log.write(out):,} pages"
    else:
        if log.gaps:
            problem = "positions are missing, and wscd has none"
            raise InputError(problem, path=log.source, field="--to", expected="gaps='close'")
        written = f"{write_wscd(log, out):,} pages"
    show(f"read as {log.layout}")
    if options.to != "wscd":
        show(*seen_lines(log.seen))
    show(f"{written} written to {out}")
    return 0


def cell_columns(log: ClickLog, bias: Sequence[str]) -> list[str]:
    """The columns of a file of cells: lanes, split, query, document, position and `bias`."""
    check_free([*bias])
    no_lanes = {*bias, *KNOWN, "split", "user"}
    lanes = [name for name in log.holding(bias).page_columns if name not in no_lanes]
    return [*lanes, "split", *CELL, *bias]

"""Count a click log of any format and size into cells, or convert it.

    twotowers count LOG --out cells.parquet
    twotowers count LOG --to sessions --out sessions.parquet

A cell is a query, a document and a position, with its impressions and clicks. The format and the
columns are recognised; `--format` and `--column query=query_id` say them. docs/logs.md describes
the formats. The exit status is 0, or 2 on bad input.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twotowers.commands.options import FORMAT_HELP, add_reader_options, log_of
from twotowers.commands.telling import tell
from twotowers.errors import InputError
from twotowers.logs.click_log import ClickLog, check_out
from twotowers.logs.conversion import to_cells, to_sessions
from twotowers.logs.formats.wscd import write_wscd
from twotowers.logs.ids import beside, number_cells, write_clax
from twotowers.logs.sessions import seen_lines
from twotowers.logs.warehouse import MEMORY

EXPORTS = {"clax": write_clax, "wscd": write_wscd}
"""Formats of other libraries, written from a sessions file."""
TARGETS = ("cells", "sessions", *EXPORTS)
EPILOG = FORMAT_HELP


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    reading = add_reader_options(parser)
    reading.add_argument("--lanes", nargs="+", metavar="COLUMN", help="further columns of pages")
    reading.add_argument("--split", help="name of the split, if no column has it (log)")
    parser.add_argument("--out", required=True, help="the file to write")
    parser.add_argument("--to", choices=TARGETS, default="cells", help="what to write (cells)")
    parser.add_argument(
        "--bias", nargs="+", metavar="COLUMN", help="bias features that tell cells apart"
    )
    parser.add_argument(
        "--number-ids",
        action="store_true",
        help="for cells: number queries and documents from 0, as fits need",
    )
    parser.add_argument("--memory", help=f"memory limit for counting ({MEMORY})")


def run(options: argparse.Namespace) -> int:
    """Count or convert the log; returns the exit status."""
    out = Path(options.out)
    numbered = options.to == "clax" or (options.to == "cells" and options.number_ids)
    endings = () if options.to == "wscd" else (".parquet",)
    check_out(options.log, out, *endings, beside=[beside(out)] * numbered)
    if options.memory is not None and options.to != "cells":
        raise InputError("nothing is counted", field="--memory", expected="--to cells")
    if options.number_ids and options.to != "cells":
        raise InputError(
            f"{options.to} keep their ids", field="--number-ids", expected="--to cells"
        )
    log = log_of(options)
    if options.to == "cells":
        written = f"{_to_cells(log, options, out):,} cells"
    else:
        reading = log.reading(options.bias)
        if options.to == "sessions":
            pages = to_sessions(log.source, out, **reading)
        else:
            with _intermediate(out) as sessions:
                to_sessions(log.source, sessions, **reading)
                pages = EXPORTS[options.to](sessions, out)
        written = f"{pages:,} pages"
    tell(f"read as {log.layout}")
    if options.to in ("cells", "sessions"):
        tell(*seen_lines(out))
    tell(f"{written} written to {out}")
    if numbered:
        tell(f"the ids of its numbers: {beside(out)}")
    return 0


def _to_cells(log: ClickLog, options: argparse.Namespace, out: Path) -> int:
    memory, how = options.memory or MEMORY, log.reading(options.bias)
    if not options.number_ids:
        return to_cells(log.source, out, memory=memory, **how)
    with _intermediate(out) as named:
        to_cells(log.source, named, memory=memory, **how)
        return number_cells(named, out, memory=memory)


@contextmanager
def _intermediate(out: Path) -> Iterator[Path]:
    """The path of a temporary parquet file beside another file."""
    # After a kill, the next run removes files with such names.
    path = out.with_name(f".{out.name}.{secrets.token_hex(4)}.parquet")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)

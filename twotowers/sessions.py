"""Convert a click log of any common format to cells or sessions, as the pipeline reads them.

    python -m twotowers.sessions LOG --format rows --out cells.parquet
    python -m twotowers.sessions LOG --format pages --to sessions --out sessions.parquet

Columns are found by their usual names. `--column query=query_id` gives another name. docs/logs.md
describes the formats. The exit status is 0, or 2 on bad input.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twotowers.errors import InputError
from twotowers.files.artefacts import check_target
from twotowers.logs.formats import FORMATS, to_cells, to_sessions
from twotowers.logs.ids import beside, number_cells, write_clax
from twotowers.logs.reader_options import add_reader_options, as_typed, reader_settings
from twotowers.logs.sessions import seen_lines
from twotowers.logs.warehouse import MEMORY
from twotowers.logs.wscd import write_wscd

EXPORTS = {"clax": write_clax, "wscd": write_wscd}
"""Formats of other libraries, written from a sessions file."""
TARGETS = ("cells", "sessions", *EXPORTS)


def convert(options: argparse.Namespace) -> Iterator[str]:
    """Convert the log, and yield lines that say what was done.

    Raises:
        InputError: see `twotowers.logs.formats`.
    """
    settings = reader_settings(options)
    out = Path(options.out)
    check_target(out, options.log)
    if options.to == "cells":
        written = f"{_to_cells(options, settings, out):,} cells"
    else:
        settings["bias"] = options.bias
        if options.to == "sessions":
            pages = to_sessions(options.log, out, format=options.format, **settings)
        else:
            pages = _export(options, settings, out)
        written = f"{pages:,} pages"
    if options.to in ("cells", "sessions"):
        yield from seen_lines(out)
    yield f"{written} written to {out}"
    if options.to == "clax" or (options.to == "cells" and options.number_ids):
        yield f"the ids of its numbers: {beside(out)}"


def _to_cells(options: argparse.Namespace, settings: dict, out: Path) -> int:
    counting = {"format": options.format, "bias": options.bias or (), "memory": options.memory}
    if not options.number_ids:
        return to_cells(options.log, out, **counting, **settings)
    with _intermediate(out) as named:
        to_cells(options.log, named, **counting, **settings)
        return number_cells(named, out, memory=options.memory)


def _export(options: argparse.Namespace, settings: dict, out: Path) -> int:
    write = EXPORTS[options.to]
    with _intermediate(out) as sessions:
        to_sessions(options.log, sessions, format=options.format, **settings)
        return write(sessions, out)


@contextmanager
def _intermediate(out: Path) -> Iterator[Path]:
    """The path of a temporary parquet file beside another file."""
    # After a kill, the next run removes files with such names.
    path = out.with_name(f".{out.name}.{secrets.token_hex(4)}.parquet")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    found = argparse.ArgumentParser(
        prog="python -m twotowers.sessions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="formats:\n"
        + "\n".join(f"  {name:<10}{each.what}" for name, each in FORMATS.items()),
    )
    found.add_argument("log", help="the click log, a file")
    found.add_argument("--format", required=True, choices=list(FORMATS), help="its format")
    found.add_argument("--out", required=True, help="the file to write")
    found.add_argument("--to", choices=TARGETS, default="cells", help="what to write (cells)")
    add_reader_options(found)
    found.add_argument(
        "--bias", nargs="+", metavar="COLUMN", help="bias features that tell cells apart"
    )
    found.add_argument(
        "--number-ids",
        action="store_true",
        help="for cells: number queries and documents from 0, as fits need",
    )
    found.add_argument("--memory", default=MEMORY, help=f"memory limit for counting ({MEMORY})")
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    options = parser().parse_args(arguments)
    try:
        print(*convert(options), sep="\n", flush=True)
    except InputError as error:
        print(f"error: {as_typed(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Options of a command line that are settings of a log's reader (`twotowers.logs.formats`)."""

from __future__ import annotations

import argparse
import re

from twotowers.errors import InputError

SETTINGS = ("lanes", "clicks", "first", "gaps", "split", "strays", "repeats", "ids")
"""Names that an option shares with a setting of the reader."""


def add_reader_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a log."""
    parser.add_argument(
        "--column", action="append", metavar="OURS=THEIRS", help="the name of a column in the file"
    )
    parser.add_argument("--lanes", nargs="+", metavar="COLUMN", help="further columns of pages")
    parser.add_argument("--clicks", help="for pages: flags, or documents (the clicked ones)")
    parser.add_argument("--first", type=int, help="for rows: the number of the first position (1)")
    parser.add_argument("--gaps", help="for rows with missing positions: error, or close")
    parser.add_argument("--ids", help="for wscd: numbers, or text")
    parser.add_argument("--split", help="name of the split, if no column has it (log)")
    parser.add_argument("--strays", help="for pages, yandex and wscd: stray clicks: drop, or error")
    parser.add_argument("--repeats", help="further clicks on a document: drop, or error")


def reader_settings(options: argparse.Namespace) -> dict:
    """The settings of `twotowers.logs.formats.open_log` that the options name.

    Raises:
        InputError: `--column` is not of the form OURS=THEIRS.

    Example:
        >>> import argparse
        >>> parser = argparse.ArgumentParser()
        >>> add_reader_options(parser)
        >>> found = reader_settings(parser.parse_args(["--column", "query=q", "--first", "0"]))
        >>> found["columns"], found["first"], found["strays"]
        ({'query': 'q'}, 0, None)
    """
    settings = {name: getattr(options, name) for name in SETTINGS}
    settings["columns"] = _columns(options.column)
    return settings


def as_typed(error: InputError) -> str:
    """The message of a reader, with settings as options of the command.

    Example:
        >>> as_typed(InputError("row 3: 4 was found", expected="3; or gaps='close'"))
        'row 3: 4 was found (expected 3; or --gaps close)'
    """
    text = re.sub(rf"\b({'|'.join(SETTINGS)})='(\w+)'", r"--\1 \2", str(error))
    return text.replace("`columns`", "--column OURS=THEIRS")


def _columns(pairs: list[str] | None) -> dict[str, str] | None:
    """['query=query_id'] -> {'query': 'query_id'}"""
    if not pairs:
        return None
    columns = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not (ours and equals and theirs):
            raise InputError(f"{pair!r}", field="--column", expected="OURS=THEIRS")
        columns[ours] = theirs
    return columns

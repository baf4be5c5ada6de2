"""What commands share: the options that say how to read a log, and printing."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from twotowers.errors import TRY, InputError
from twotowers.files.artefacts import check_target
from twotowers.fits.defaults import BIAS
from twotowers.logs.click_log import ClickLog, read_log
from twotowers.logs.layouts import USUAL, parts_of
from twotowers.logs.opening import FORMATS

READER: Mapping[str, Mapping[str, Any]] = {
    "format": {"choices": [*FORMATS], "help": "its format"},
    "encoding": {"help": "of csv files that are not in UTF-8, such as latin-1"},
    "page": {
        "nargs": "+", "metavar": "COLUMN", "help": "for rows: columns that tell pages apart",
    },
    "clicks": {"help": "for pages: flags, or documents (the clicked ones)"},
    "first": {"type": int, "help": "for rows: the number of the first position (1)"},
    "gaps": {
        "help": "for rows with missing positions: keep the others, close, or error (keep)",
    },
    "actions": {"nargs": "+", "metavar": "ACTION", "help": "for ubi: which are clicks"},
    "shown": {"help": "for ubi: hits, impressions, or which action is one"},
    "seen": {
        "metavar": "clicked+N",
        "help": "leave out documents more than N below the lowest click of a page",
    },
    "strays": {"help": "for pages, ubi, yandex and wscd: stray clicks: drop, or error"},
    "ordered": {
        "action": "store_true", "help": "the pages of the file are in the order of time",
    },
    "bots": {"help": "users whose clicks are out of line: keep, or drop"},
    "repeats": {"help": "further clicks on a document: drop, or error"},
    "memory": {"help": "to use, such as 8GB; what exceeds it is in a file"},
}  # fmt: skip
"""Options that are arguments of `read_log`, but for `listed`, which commands call clicks."""
FORMAT_HELP = "formats:\n" + "\n".join(
    f"  {name:<10}{each.layout}" for name, each in FORMATS.items()
)


def show(*lines: str) -> None:
    """Print lines. Whoever has closed the pipe, as `head` does, has seen enough."""
    try:
        if lines:
            print(*lines, sep="\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def add_reader_options(parser: argparse.ArgumentParser) -> None:
    """Add the log, and the options that say how to read it."""
    parser.add_argument(
        "log", help="a file, a pattern of files such as 'part-*.parquet', or a folder of such parts"
    )
    group = parser.add_argument_group(
        "how to read the log", "The format and the columns are recognised unless they are given."
    )
    group.add_argument(
        "--column", action="append", metavar="OURS=THEIRS", help="the name of a column in the file"
    )
    for name, how in READER.items():
        group.add_argument(f"--{name}", **how)


def add_bias(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the bias factor."""
    parser.add_argument(
        "--bias",
        nargs="+",
        metavar="COLUMN",
        default=[*BIAS],
        help=f"columns that name the bias factor (default: {' '.join(BIAS)})",
    )


def log_of(options: argparse.Namespace) -> ClickLog:
    """The log that the options name."""
    settings = {
        name: value for name, value in vars(options).items() if name in READER and value is not None
    }
    if "clicks" in settings:
        settings["listed"] = settings.pop("clicks")
    columns = dict(pairs_of(options.column, "column", "OURS=THEIRS"))
    # Columns whose names are ours are read without being asked for.
    asked = (getattr(options, name, None) or () for name in ("bias", "feature"))
    if further := sorted(name for name in {*chain(*asked)} & {*columns} if name not in USUAL):
        settings["bias"] = further
    return read_log(options.log, columns=columns, **settings)


def opened(options: argparse.Namespace, *endings: str, bias: bool = False) -> ClickLog:
    """The log that the options name, once it is known that results can be written.

    Args:
        options: perhaps with `out`, a file or None.
        endings: of that file; none for any.
        bias: warn of what biases an estimate of position bias.
    """
    if getattr(options, "out", None):
        check_target(options.out, parts_of(Path(options.log)), *endings)
    log = log_of(options)
    show(f"read as {log.layout}")
    if bias and "seen" in log.settings:
        show("warning: documents were left out by clicks (--seen), which biases propensities")
    if bias and log.settings.get("gaps") == "close":
        show(
            "warning: where gaps were closed (--gaps close), documents count as higher than users "
            "saw them; --gaps keep keeps their positions"
        )
    return log


def as_typed(error: InputError, command: str) -> str:
    """The message of an error, with settings and arguments as options of a command.

    What was typed, `command`, is printed again with settings that would read the log.

    Example:
        >>> settings = {"columns": {"query": "my query"}, "page": ["visit", "query"]}
        >>> error = InputError("row 2: a and b", settings=settings)
        >>> print(as_typed(error, "twotowers fit log.csv"))
        row 2: a and b
        try: twotowers fit log.csv --column 'query=my query' --page visit query
        >>> as_typed(InputError("row 3: 4 was found", expected="3; or gaps='close'"), "")
        'row 3: 4 was found (expected 3; or --gaps close)'
        >>> as_typed(InputError("the log is empty", path="split=train/part-0.csv"), "")
        'split=train/part-0.csv: the log is empty'
    """
    text, *_ = str(error).partition(TRY)
    text = re.sub(rf"\b({'|'.join(READER)})=('?)([\w-]+)\2(?![\w/\\])", r"--\1 \3", text)
    text = text.replace("`columns`", "--column OURS=THEIRS")
    if not error.settings:
        return text
    settings: dict[str, Any] = dict(error.settings)
    pairs = settings.pop("columns", {}).items()
    words = [word for pair in pairs for word in ("--column", "=".join(pair))]
    for name, value in settings.items():
        words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return f"{text}\ntry: {command} {shlex.join(words)}"


def pairs_of(
    words: Sequence[str] | None, option: str, form: str = "NAME=VALUE"
) -> Iterator[tuple[str, str]]:
    """The two sides of the words of an option, such as query=query_id."""
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise InputError(f"{word!r} was given", field=f"--{option}", expected=form)
        yield name, value


def refuse(options: argparse.Namespace, names: Sequence[str], why: str, expected: str) -> None:
    """Raise InputError if one of some options was given."""
    for name in names:
        if getattr(options, name) is not None:
            raise InputError(why, field=f"--{name.replace('_', '-')}", expected=expected)

"""Can this click log give propensities, and what should you do with it? One page answers.

    twotowers diagnose LOG --out page.html

Prints three answers, and writes a page that needs no other file, with all of its numbers in
a .json file beside it. docs/diagnosis.md says what is on it.
Ends with 0 if none of them is red, 1 if one is, 2 on bad input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.options import add_bias, add_reader_options, opened, show


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    add_bias(parser)
    parser.add_argument(
        "--features", metavar="FILE", help="a table with query, document, and a column per feature"
    )
    parser.add_argument("--out", required=True, help="the html file to write")


def run(options: argparse.Namespace) -> int:
    """Diagnose the log; returns the exit status."""
    from twotowers.diagnosis.diagnose import PAGE, diagnose  # here: options need no science
    from twotowers.diagnosis.page import check_numbers, numbers_of

    log = opened(options, PAGE, beside=[numbers_of(options.out)], bias=True)
    check_numbers(options.out)
    diagnosis = diagnose(log, options.features, options.bias)
    show(str(diagnosis))
    diagnosis.save(options.out)
    show(f"written to {options.out}")
    return 1 if diagnosis.red else 0

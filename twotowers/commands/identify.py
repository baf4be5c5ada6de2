"""Is this click log identified, and what would repair it?

    twotowers identify LOG --bias position device

Ends with 0 if the log is identified up to one constant, 1 if it is not, 2 on bad input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.options import add_bias, add_reader_options, opened, show
from twotowers.fits.defaults import FEATURE


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    parser.add_argument(
        "--feature",
        nargs="+",
        metavar="COLUMN",
        default=[*FEATURE],
        help=f"columns that name the feature vector (default: {' '.join(FEATURE)})",
    )
    add_bias(parser)


def run(options: argparse.Namespace) -> int:
    """Test the log; returns the exit status."""
    from twotowers.analysis.identification import identify  # here: options need no science

    result = identify(opened(options), bias=options.bias, feature=options.feature)
    show(str(result))
    return 0 if result.identified else 1

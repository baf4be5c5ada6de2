"""Is this click log identified, and what would repair it?

    twotowers identify LOG --bias position device

Reads a table with a row per shown document, or a log of any format that `twotowers count` knows.
Ends with 0 if the log is identified up to one constant, 1 if it is not, 2 on bad input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.options import add_bias, add_reader_options, given, log_of, show
from twotowers.fits.defaults import FEATURE, REPAIRS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    columns = {"nargs": "+", "metavar": "COLUMN"}
    parser.add_argument(
        "--feature",
        default=[*FEATURE],
        help=f"columns that name the feature vector (default: {' '.join(FEATURE)})",
        **columns,
    )
    add_bias(parser)
    parser.add_argument(
        "--bias-features",
        help="numeric columns whose distance is the cost of merging (default: the bias columns)",
        **columns,
    )
    parser.add_argument("--repair", choices=REPAIRS, help="only this repair (default: both)")


def run(options: argparse.Namespace) -> int:
    """Test the log; returns the exit status."""
    from twotowers.analysis.column_counts import any_log  # here: options need no science
    from twotowers.analysis.identification import identify

    log = log_of(options) if given(options) else any_log(options.log)
    result = identify(
        log,
        bias=options.bias,
        feature=options.feature,
        bias_features=options.bias_features,
        repair=options.repair,
    )
    if log.layout.columns or log.layout.format != "rows":  # Otherwise it is a table of any columns.
        show(f"read as {log.layout}")
    show(str(result))
    if result.identified and options.repair:
        show(f"nothing to {options.repair}: the log is connected already")
    return 0 if result.identified else 1

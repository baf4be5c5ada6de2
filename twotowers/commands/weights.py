"""Weigh clicks by inverse propensity, for a ranker that learns from them.

    twotowers weights LOG --out weights.csv

Writes a row per shown document with its weight, or a row per position. Propensities are the
conditional estimate of `twotowers propensities` by default. The exit status is 0, or 2 on bad
input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.options import add_bias, add_reader_options, opened, show
from twotowers.files.artefacts import check_target
from twotowers.fits.defaults import WEIGHED_BY as BY


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    parser.add_argument("--out", required=True, help="a csv or parquet file")
    parser.add_argument(
        "--per", choices=("row", "position"), default="row", help="a row per what (row)"
    )
    add_bias(parser)
    parser.add_argument(
        "--by",
        default=BY[0],
        help=f"{', '.join(BY)}, or a fit that `twotowers fit` saved (default: {BY[0]})",
    )
    parser.add_argument("--clip", type=float, default=10.0, help="the largest weight (10)")


def run(options: argparse.Namespace) -> int:
    """Estimate, weigh and write; returns the exit status."""
    from twotowers.analysis.weights import ENDINGS, weights
    from twotowers.fits.saved import load_click_model

    by = load_click_model(options.by) if options.by.endswith(".parquet") else options.by
    if not isinstance(by, str):
        check_target(options.out, options.by, what="the fit")
    log = opened(options, *ENDINGS, bias=True)
    weighed = weights(log, by=by, bias=options.bias, clip=options.clip)
    show(*weighed.lines())
    weighed.write(options.out, per=options.per)
    show(f"written to {options.out}")
    return 0

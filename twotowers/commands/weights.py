"""Weigh clicks by inverse propensity, for a ranker that learns from them.

    twotowers weights LOG --out weights.csv

Writes a row per shown document with its weight, or a row per position. Propensities are the
conditional estimate of `twotowers propensities` by default. The exit status is 0, or 2 on bad
input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.options import add_bias, add_reader_options, opened, show
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
        "--by", choices=BY, default=BY[0], help=f"how to estimate them (default: {BY[0]})"
    )
    parser.add_argument("--clip", type=float, default=10.0, help="the largest weight (10)")


def run(options: argparse.Namespace) -> int:
    """Estimate, weigh and write; returns the exit status."""
    from twotowers.analysis.weights import ENDINGS, weights

    log = opened(options, *ENDINGS, bias=True)
    weighed = weights(log, by=options.by, bias=options.bias, clip=options.clip)
    show(*weighed.lines())
    weighed.write(options.out, per=options.per)
    show(f"written to {options.out}")
    return 0

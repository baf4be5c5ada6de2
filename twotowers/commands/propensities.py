"""How much less is a document examined at each position than at the first?

    twotowers propensities LOG --out curve.csv

Prints the curve with intervals, and says what is weak about it. The default estimate is conditional
on each pair's clicks: it asks where they fell, so what attracts users does not matter.
Ends with 0 if every position has an estimate, 1 if not, 2 on bad input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.options import add_bias, add_reader_options, opened, show
from twotowers.errors import check_range
from twotowers.fits.defaults import ESTIMATORS as NAMES
from twotowers.report.words import numbered


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    add_bias(parser)
    parser.add_argument(
        "--estimator", choices=NAMES, default=NAMES[0], help=f"how (default: {NAMES[0]})"
    )
    parser.add_argument("--out", help="a csv or parquet file for the curve")
    parser.add_argument(
        "--swaps",
        type=int,
        metavar="PAGES",
        help="also propose five swaps to run, of so many pages for each arrangement",
    )


def run(options: argparse.Namespace) -> int:
    """Estimate the curve; returns the exit status."""
    import numpy as np

    from twotowers.analysis.propensities import ENDINGS, check_links, propensities

    if options.swaps is not None:
        check_range(options.swaps, field="--swaps", low=1, high=1e12)
        check_links(options.estimator)
    log = opened(options, *ENDINGS, bias=True)
    curve = propensities(log, bias=options.bias, estimator=options.estimator)
    show(str(curve))
    if options.swaps is not None:
        proposed = curve.swaps(pages=options.swaps)
        show(f"swaps to run, on {numbered(options.swaps, 'page')} each way:")
        show(proposed.to_string(index=False, float_format="{:.3g}".format))
    if options.out:
        curve.write(options.out)
        show(f"written to {options.out}")
    return 0 if np.isfinite(curve.curve.estimate).all() else 1

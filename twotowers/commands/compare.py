"""Which click model predicts a log best?

    twotowers compare LOG --models pbm ubm dbn
    twotowers compare LATER --fitted ubm.parquet

Fits models to some pages of a log, and predicts the others. With `--fitted`, saved fits predict all
pages of the log, and nothing is fitted. The exit status is 0, or 2 on bad input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.fit import add_prior, prior_of, report
from twotowers.commands.options import FORMAT_HELP, add_reader_options, opened, show
from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.tables import write_csv
from twotowers.fits.defaults import TEST
from twotowers.logs.health import copied_lines
from twotowers.logs.strays import left_out
from twotowers.models.names import MODELS

EPILOG = FORMAT_HELP


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    parser.add_argument(
        "--models", nargs="+", metavar="MODEL", help=f"some of {', '.join(MODELS)} (all)"
    )
    parser.add_argument("--fitted", nargs="+", metavar="FILE", help="saved fits to compare instead")
    parser.add_argument("--out", help="csv file to write the comparison to")
    parser.add_argument("--test", type=float, help=f"share of pages held out ({TEST})")
    parser.add_argument("--seed", type=int, help="chooses these pages (0)")
    add_prior(parser)


def run(options: argparse.Namespace) -> int:
    """Compare the models; returns the exit status."""
    from twotowers.analysis.comparison import compare  # here: options need no science
    from twotowers.fits.saved import load_click_model

    if options.fitted:
        for name in ("models", "test", "seed", "prior", "prior_mean"):
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise InputError(
                    "a saved fit is not fitted again", field="--fitted", expected=f"no {option}"
                )
    prior, test = prior_of(options), TEST if options.test is None else options.test
    saved = [load_click_model(path) for path in options.fitted or ()]
    log = opened(options, ".csv")
    models = saved or options.models or list(MODELS)
    table = compare(log, models, prior=prior, test=test, seed=options.seed or 0)
    show(f"{log.pages:,} pages", *left_out(log.seen), *copied_lines(log))
    show(report(table))
    if options.out:
        with atomic(options.out) as temporary:
            write_csv(table, temporary)
        show(f"saved in {options.out}")
    return 0

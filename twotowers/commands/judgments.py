"""Grade documents by their clicks, for a search engine or an evaluation tool.

    twotowers judgments LOG --out qrels.txt

Fits a click model, and grades the relevance that it finds. A document that users hardly examined
gets no judgment, and one that they never clicked gets 0. The exit status is 0, or 2 on bad input.
"""

from __future__ import annotations

import argparse

from twotowers.commands.fit import add_prior, prior_of
from twotowers.commands.options import add_reader_options, opened, show
from twotowers.errors import InputError
from twotowers.logs.health import copied_lines
from twotowers.logs.strays import left_out
from twotowers.models.names import MODELS

TO = ("trec", "csv", "ranklib", "rre", "opensearch")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    parser.add_argument("--out", required=True, help="the file of judgments")
    parser.add_argument("--to", choices=TO, default=TO[0], help=f"its format ({TO[0]})")
    parser.add_argument("--model", default="ubm", help=f"one of {', '.join(MODELS)} (ubm)")
    parser.add_argument(
        "--grades",
        type=int,
        help="number of grades (4: 0 for never clicked, 1 to 3 with as many documents each)",
    )
    parser.add_argument(
        "--thresholds",
        nargs="+",
        type=float,
        metavar="RELEVANCE",
        help="instead: relevance from which on grades 1, 2, ... are given",
    )
    parser.add_argument(
        "--min-examinations",
        type=float,
        default=10.0,
        help="expected examinations that a judgment needs (10)",
    )
    add_prior(parser)


def run(options: argparse.Namespace) -> int:
    """Fit, grade and write; returns the exit status."""
    from twotowers.fits.fitting import fit_click_model
    from twotowers.fits.judgments import checked_grades, judgments_of
    from twotowers.fits.models import fitted_model
    from twotowers.fits.reduction import check_of_documents

    # Options are checked before the fit, which may take minutes.
    if options.grades is not None and options.thresholds:
        raise InputError("both were given", field="--thresholds", expected="no --grades")
    given = options.thresholds or (4 if options.grades is None else options.grades)
    grades = checked_grades(given, options.min_examinations)
    check_of_documents(*fitted_model(options.model))
    prior = prior_of(options)
    log = opened(options)
    fitted = fit_click_model(log, options.model, prior=prior)
    show(*left_out(log.seen), *(() if log.counted else copied_lines(log)), *fitted.notes())
    judged = judgments_of(fitted, grades, options.min_examinations)
    show(*judged.lines())
    show(*(f"written to {path}" for path in judged.write(options.out, options.to)))
    return 0

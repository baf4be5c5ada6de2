"""The commands but `fit`: each is a function, whose text is its help, and the options it adds."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from twotowers.commands.fit import add_prior, prior_of, report
from twotowers.commands.options import add_bias, opened, refuse, show
from twotowers.errors import InputError, check_range
from twotowers.files.artefacts import atomic
from twotowers.files.tables import write_csv
from twotowers.fits.defaults import ESTIMATORS, FEATURE, TEST, WEIGHED_BY
from twotowers.logs.click_log import KNOWN, ClickLog
from twotowers.logs.counted import CELL, write_counts
from twotowers.logs.formats.wscd import write_wscd
from twotowers.logs.health import copied_lines
from twotowers.logs.layouts import parts_of
from twotowers.logs.sessions import check_free, seen_lines
from twotowers.logs.strays import left_out
from twotowers.models.names import MODELS
from twotowers.report.words import numbered

TARGETS = ("cells", "sessions", "wscd")
"""What `count` writes."""
MEMORY = "3GB"
"""That `count` uses."""
TO = ("trec", "csv", "ranklib", "rre", "opensearch")
"""Formats of judgments."""


def diagnose_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `diagnose`."""
    add_bias(parser)
    parser.add_argument(
        "--features", metavar="FILE", help="a table with query, document, and a column per feature"
    )
    parser.add_argument("--out", required=True, help="the html file to write")


def diagnose(options: argparse.Namespace) -> int:
    """Can this click log give propensities, and what should you do with it? One page answers.

        twotowers diagnose LOG --out page.html

    Prints three answers, and writes a page that needs no other file, with all of its numbers in
    a .json file beside it. docs/diagnosis.md says what is on it.
    Ends with 0 if no answer is red, 1 if one is, 2 on bad input.
    """
    from twotowers.diagnosis import diagnose as diagnosis  # here: options need no science
    from twotowers.diagnosis.page import check_page

    check_page(options.out, parts_of(Path(options.log)))
    log = opened(options, bias=True)
    found = diagnosis.diagnose(log, options.features, options.bias)
    show(str(found))
    found.save(options.out)
    show(f"written to {options.out}")
    return 1 if found.red else 0


def identify_options(parser: argparse.ArgumentParser) -> None:
    """Add `--feature` and `--bias`, the options of the command `identify`, to its parser."""
    parser.add_argument(
        "--feature",
        nargs="+",
        metavar="COLUMN",
        default=[*FEATURE],
        help=f"columns that name the feature vector (default: {' '.join(FEATURE)})",
    )
    add_bias(parser)


def identify(options: argparse.Namespace) -> int:
    """Is this click log identified, and what would repair it?

        twotowers identify LOG --bias position device

    Ends with 0 if the log is identified up to one constant, 1 if it is not, 2 on bad input.
    """
    from twotowers.analysis import identification

    log = opened(options)
    result = identification.identify(log, bias=options.bias, feature=options.feature)
    show(str(result))
    return 0 if result.identified else 1


def propensities_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `propensities`."""
    add_bias(parser)
    parser.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        default=ESTIMATORS[0],
        help=f"how (default: {ESTIMATORS[0]})",
    )
    parser.add_argument("--out", help="a csv or parquet file for the curve")
    parser.add_argument(
        "--swaps",
        type=int,
        metavar="PAGES",
        help="also propose five swaps to run, of so many pages for each arrangement",
    )


def propensities(options: argparse.Namespace) -> int:
    """How much less is a document examined at each position than at the first?

        twotowers propensities LOG --out curve.csv

    Prints the curve with intervals, and says what is weak about it. The default estimate is
    conditional on each pair's clicks: it asks where they fell, so what attracts users does not
    matter.
    Ends with 0 if every position has an estimate, 1 if not, 2 on bad input.
    """
    import numpy as np

    from twotowers.analysis import propensities as curves

    if options.swaps is not None:
        check_range(options.swaps, field="--swaps", low=1, high=1e12)
        curves.check_links(options.estimator)
    log = opened(options, *curves.ENDINGS, bias=True)
    curve = curves.propensities(log, bias=options.bias, estimator=options.estimator)
    show(str(curve))
    if options.swaps is not None:
        proposed = curve.swaps(pages=options.swaps)
        show(f"swaps to run, on {numbered(options.swaps, 'page')} each way:")
        show(proposed.to_string(index=False, float_format="{:.3g}".format))
    if options.out:
        curve.write(options.out)
        show(f"written to {options.out}")
    return 0 if np.isfinite(curve.curve.estimate).all() else 1


def compare_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    parser.add_argument(
        "--models", nargs="+", metavar="MODEL", help=f"some of {', '.join(MODELS)} (all)"
    )
    parser.add_argument("--fitted", nargs="+", metavar="FILE", help="saved fits to compare instead")
    parser.add_argument("--out", help="csv file to write the comparison to")
    parser.add_argument("--test", type=float, help=f"share of pages held out ({TEST})")
    parser.add_argument("--seed", type=int, help="chooses these pages (0)")
    add_prior(parser)


def compare(options: argparse.Namespace) -> int:
    """Which click model predicts a log best?

        twotowers compare LOG --models pbm ubm dbn
        twotowers compare LATER --fitted ubm.parquet

    Fits models to some pages of a log, and predicts the others. With `--fitted`, saved fits predict
    all pages of the log, and nothing is fitted. The exit status is 0, or 2 on bad input.
    """
    from twotowers.analysis import comparison
    from twotowers.fits.saved import load_click_model

    if options.fitted:
        of_fits = ("models", "test", "seed", "prior", "prior_mean")
        refuse(options, of_fits, "a saved fit is not fitted again", "--fitted without it")
    prior, test = prior_of(options), TEST if options.test is None else options.test
    saved = [load_click_model(path) for path in options.fitted or ()]
    log = opened(options, ".csv")
    models = saved or options.models or list(MODELS)
    table = comparison.compare(log, models, prior=prior, test=test, seed=options.seed or 0)
    show(f"{log.pages:,} pages", *left_out(log.seen), *copied_lines(log))
    show(report(table))
    if options.out:
        with atomic(options.out) as temporary:
            write_csv(table, temporary)
        show(f"saved in {options.out}")
    return 0


def judgments_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `judgments`."""
    parser.add_argument("--out", required=True, help="the file of judgments")
    parser.add_argument("--to", choices=TO, default=TO[0], help=f"its format ({TO[0]})")
    parser.add_argument("--model", default="ubm", help=f"one of {', '.join(MODELS)} (ubm)")
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--grades",
        type=int,
        default=4,
        help="number of grades (4: 0 for never clicked, 1 to 3 with as many documents each)",
    )
    either.add_argument(
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


def judgments(options: argparse.Namespace) -> int:
    """Grade documents by their clicks, for a search engine or an evaluation tool.

        twotowers judgments LOG --out qrels.txt

    Fits a click model, and grades the relevance that it finds. A document that users hardly
    examined gets no judgment, and one that they never clicked gets 0. The exit status is 0, or 2 on
    bad input.
    """
    from twotowers.fits.fitting import fit_click_model
    from twotowers.fits.judgments import checked_grades
    from twotowers.fits.models import fitted_model
    from twotowers.fits.reduction import check_of_documents

    # Options are checked before the fit, which may take minutes.
    how = options.thresholds or options.grades, options.min_examinations
    checked_grades(*how)
    check_of_documents(*fitted_model(options.model))
    prior = prior_of(options)
    log = opened(options)
    fitted = fit_click_model(log, options.model, prior=prior)
    show(*left_out(log.seen), *(() if log.counted else copied_lines(log)), *fitted.notes())
    judged = fitted.judgments(*how)
    show(*judged.lines())
    show(*(f"written to {path}" for path in judged.write(options.out, options.to)))
    return 0


def weights_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `weights`."""
    parser.add_argument("--out", required=True, help="a csv or parquet file")
    parser.add_argument(
        "--per", choices=("row", "position"), default="row", help="a row per what (row)"
    )
    add_bias(parser)
    parser.add_argument(
        "--by",
        choices=WEIGHED_BY,
        default=WEIGHED_BY[0],
        help=f"how to estimate propensities (default: {WEIGHED_BY[0]})",
    )
    parser.add_argument("--clip", type=float, default=10.0, help="the largest weight (10)")


def weights(options: argparse.Namespace) -> int:
    """Weigh clicks by inverse propensity, for a ranker that learns from them.

        twotowers weights LOG --out weights.csv

    Writes a row per shown document with its weight, or a row per position. Propensities are the
    conditional estimate of `twotowers propensities` by default. The exit status is 0, or 2 on bad
    input.
    """
    from twotowers.analysis import weights as weighing

    log = opened(options, *weighing.ENDINGS, bias=True)
    weighed = weighing.weights(log, by=options.by, bias=options.bias, clip=options.clip)
    show(*weighed.lines())
    weighed.write(options.out, per=options.per)
    show(f"written to {options.out}")
    return 0


def count_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `count`."""
    parser.add_argument("--out", required=True, help="the file to write")
    parser.add_argument("--to", choices=TARGETS, default="cells", help="what to write (cells)")
    parser.add_argument(
        "--bias", nargs="+", metavar="COLUMN", help="bias features that tell cells apart"
    )
    parser.set_defaults(memory=MEMORY)


def count(options: argparse.Namespace) -> int:
    """Count a click log of any format and size into cells, or convert it.

        twotowers count LOG --out cells.parquet
        twotowers count LOG --to sessions --out sessions.parquet

    A cell is a query, a document and a position, with its impressions and clicks. The format and
    the columns are recognised; `--format` and `--column query=query_id` say them. docs/logs.md
    describes the formats. The exit status is 0, or 2 on bad input.
    """
    out, bias = Path(options.out), options.bias or ()
    log = opened(options, *([] if options.to == "wscd" else [".parquet"]))
    held = log.holding(bias)
    if options.to == "cells":
        portions = held.portions(cell_columns(log, bias))
        written = f"{write_counts(out, portions, log.seen):,} cells"
    elif options.to == "sessions":
        written = f"{log.write(out):,} pages"
    else:
        if log.gaps:
            problem = "positions are missing, and wscd has none"
            raise InputError(problem, path=log.source, field="--to", expected="gaps='close'")
        written = f"{write_wscd(log, out):,} pages"
    if options.to != "wscd":
        show(*seen_lines(log.seen))
    show(f"{written} written to {out}")
    return 0


def cell_columns(log: ClickLog, bias: Sequence[str]) -> list[str]:
    """The columns of a file of cells: lanes, split, query, document, position and `bias`."""
    check_free([*bias])
    no_lanes = {*bias, *KNOWN, "split", "user"}
    lanes = [name for name in log.holding(bias).page_columns if name not in no_lanes]
    return [*lanes, "split", *CELL, *bias]

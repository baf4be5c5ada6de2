"""Fit click models to a click log: how well they predict, and what they say of its documents.

    python -m twotowers.clickmodels LOG --format rows --model ubm --out ubm.parquet
    python -m twotowers.clickmodels LATER --format rows --fitted ubm.parquet

Prints the perplexity of held-out pages, and saves the fitted probabilities with their standard
errors and intervals (`twotowers.jobs.fitted_logs`). `--compare` fits all ten models. `--fitted`
fits nothing: a saved model predicts all pages of the log. Ends with 2 on bad input, and then writes
nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.files.artefacts import check_target
from twotowers.fitting.counted import PageLog
from twotowers.fitting.prior import Prior
from twotowers.jobs.fitted_logs import (
    FittedLog,
    fit_model,
    perplexities,
    read_fitted,
    write_fitted,
)
from twotowers.logs.formats import FORMATS, to_sessions
from twotowers.logs.observed_pages import divide
from twotowers.logs.page_arrays import read_page_arrays
from twotowers.logs.reader_options import add_reader_options, as_typed, reader_settings
from twotowers.logs.sessions import read_sessions, seen_lines
from twotowers.methods.page_fits import imagined
from twotowers.models.names import MODELS

FIT = {
    "model": "ubm", "compare": False, "out": None, "positions": 10, "test": 0.2,
    "prior_mean": 0.5, "prior": 2.0, "seed": 0,
}  # fmt: skip
"""Options of a fit, with their defaults. A saved model has no use for them."""

MOST_POSITIONS = 1000
"""Memory of a fit grows with the square of the positions."""


def report(names: list[str], found: dict[str, dict[str, float]]) -> Iterator[str]:
    """A line per model."""
    yield f"{'model':6} {'perplexity':>10} {'conditional':>11} {'log-likelihood':>15}"
    for name in names:
        own = found[name]
        yield (
            f"{name:6} {own['mean_perplexity']:10.4f} {own['mean_conditional_perplexity']:11.4f}"
            f" {own['log_likelihood_clax']:15.4f}"
        )


def _tell(*lines: str) -> None:
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:  # whoever read it has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m twotowers.clickmodels", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    paged = [name for name, each in FORMATS.items() if not each.counted]
    parser.add_argument("log", help="click log, in one of the formats of twotowers.sessions")
    parser.add_argument("--format", required=True, choices=paged, help="of the log")
    parser.add_argument("--fitted", metavar="FILE", help="a saved model, to predict the log with")
    fitting = parser.add_argument_group("of a fit, not with --fitted")

    def add(name: str, help: str = "", **settings) -> None:
        default = FIT[name.strip("-").replace("-", "_")]
        told = help if default is None or default is False else f"{help} (default: {default})"
        # Left out of the options unless given.
        fitting.add_argument(name, default=argparse.SUPPRESS, help=told.strip(), **settings)

    add("--model", choices=list(MODELS))
    add("--compare", action="store_true", help="fit all ten models")
    add("--out", help="parquet file to save the model to")
    add("--positions", type=int, help="of the longest page")
    add("--test", type=float, help="share of pages held out")
    add("--prior-mean", type=float, help="share of clicks in what the prior imagines")
    add("--prior", type=float, help="imagined clicks, plus 1; 1 is no prior")
    add("--seed", type=int, help="divides the log")
    add_reader_options(parser)
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except InputError as error:
        print(f"error: {as_typed(error)}", file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    # Options are checked before the log is read, which may take minutes.
    reading = reader_settings(options)
    given = [name for name in FIT if name in options]
    if options.fitted:
        if given:
            raise InputError(
                "a saved model is not fitted again", field="--fitted",
                expected=f"no --{given[0].replace('_', '-')}",
            )  # fmt: skip
        fitted = read_fitted(options.fitted)
        use, positions = partial(_predict, fitted), fitted.positions
        allowed = f"1 to {positions}, as the saved model has"
    else:
        options = argparse.Namespace(**FIT | vars(options))
        positions = options.positions
        check_range(positions, field="--positions", low=1, high=MOST_POSITIONS, whole=True)
        check_range(options.test, field="--test", low=0.001, high=0.999)
        use = partial(_fit, options, imagined(options.prior, options.prior_mean))
        allowed = f"1 to {positions}; --positions allows more"
        if options.out:
            check_target(options.out, options.log)
    with tempfile.TemporaryDirectory() as folder:
        sessions = Path(folder) / "sessions.parquet"
        size = to_sessions(options.log, sessions, format=options.format, **reading)
        # Here, since later messages would name the temporary file.
        _check_lengths(sessions, options.log, positions, allowed)
        use(sessions, size)


def _check_lengths(sessions: Path, log: str, positions: int, allowed: str) -> None:
    """Raise InputError for a log without pages, and for a page that is empty or too long."""
    page = 0
    for batch in read_sessions(sessions):
        lengths = batch["documents"].value_lengths().to_numpy()
        wrong = np.flatnonzero((lengths < 1) | (lengths > positions))
        if len(wrong):
            raise InputError(
                f"page {page + wrong[0] + 1}: it shows {lengths[wrong[0]]} documents",
                path=log, field="documents", expected=allowed,
            )  # fmt: skip
        page += len(batch)
    if not page:
        raise InputError("the log is empty", path=log)


def _fit(options: argparse.Namespace, prior: Prior, sessions: Path, size: int) -> None:
    shares = {"train": 1 - options.test, "test": options.test}
    rows = divide(size, shares, seed=options.seed, path=options.log)
    held_out = np.isin(np.arange(size), rows["test"])
    log = PageLog(sessions, options.positions, ~held_out)
    test = read_page_arrays(sessions, positions=options.positions, rows=held_out)
    divided = f"{len(rows['train']):,} pages to fit, {len(rows['test']):,} held out"
    _tell(divided, *seen_lines(sessions))
    names = list(MODELS) if options.compare else [options.model]
    found = {}
    for name in names:
        fitted = fit_model(name, log, prior)
        found[name] = perplexities(fitted, test)
        if options.out and name == options.model:
            write_fitted(options.out, fitted)
    _tell(*report(names, found))


def _predict(fitted: FittedLog, sessions: Path, size: int) -> None:
    pages = read_page_arrays(sessions, positions=fitted.positions)
    _tell(f"{size:,} pages", *seen_lines(sessions))
    found = {fitted.name: perplexities(fitted, pages)}
    _tell(*report([fitted.name], found))


if __name__ == "__main__":
    sys.exit(main())

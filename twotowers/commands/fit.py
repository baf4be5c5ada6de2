"""Fit a click model to a click log: what it says of documents and positions, and how surely.

    twotowers fit LOG --model ubm --out ubm.parquet

Prints how well the model predicts, and saves the fitted probabilities with their standard errors
and intervals (docs/logs.md). The exit status is 0, or 2 on bad input; then nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from twotowers.commands.options import FORMAT_HELP, add_reader_options, log_of
from twotowers.commands.telling import tell
from twotowers.errors import InputError, check_range
from twotowers.fits.defaults import MEAN, PRIOR
from twotowers.logs.click_log import ClickLog, check_out
from twotowers.logs.health import copied_lines
from twotowers.logs.sessions import seen_lines
from twotowers.models.names import MODELS

EPILOG = FORMAT_HELP


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_reader_options(parser)
    parser.add_argument("--model", default="ubm", help=f"one of {', '.join(MODELS)} (ubm)")
    parser.add_argument("--out", help="parquet file to save the fit to")
    parser.add_argument("--positions", type=int, help="of the longest page (that of the log)")
    parser.add_argument(
        "--test", type=float, default=0.0, help="share of pages held out to predict (0)"
    )
    parser.add_argument("--seed", type=int, default=0, help="chooses these pages (0)")
    add_prior(parser)


def add_prior(parser: argparse.ArgumentParser) -> None:
    """Add the options of the prior."""
    parser.add_argument(
        "--prior",
        help=f"imagined clicks, plus 1; 1 is no prior; or rate (the log's click rate), or chosen "
        f"on held-out pages ({PRIOR})",
    )
    parser.add_argument(
        "--prior-mean",
        type=float,
        help=f"with a number: share of clicks in what the prior imagines ({MEAN:g})",
    )


def prior_of(options: argparse.Namespace) -> tuple[float, float] | str:
    """The prior that the options name, checked before the log is read."""
    from twotowers.fits.priors import check_name
    from twotowers.methods.page_fits import imagined

    told = PRIOR if options.prior is None else options.prior
    try:
        prior = float(told)
    except ValueError:
        check_name(told)
        if options.prior_mean is not None:
            raise InputError(
                "the prior has a mean of its own",
                field="--prior-mean",
                expected="a number as prior",
            ) from None
        return told
    mean = MEAN if options.prior_mean is None else options.prior_mean
    imagined(prior, mean)
    return prior, mean


def run(options: argparse.Namespace) -> int:
    """Fit the model; returns the exit status."""
    from twotowers.fits.fitting import fit_click_model  # here: options need no science
    from twotowers.fits.models import model_of
    from twotowers.fits.reduction import check_positions

    # Options are checked before the log is read, which may take minutes.
    prior = prior_of(options)
    model_of(options.model)
    check_positions(options.positions)
    if options.test:
        check_range(options.test, field="--test", low=0.001, high=0.999)
    if options.out:
        check_out(options.log, options.out, ".parquet")
    log = log_of(options)
    tell(f"read as {log.layout}")
    part, held_out = log, None
    if options.test:
        parts = log.split({"train": 1 - options.test, "test": options.test}, seed=options.seed)
        part, held_out = parts["train"], parts["test"]
    positions = options.positions
    if positions is None and not log.counted:
        positions = log.stored.longest
    found = fit_click_model(part, options.model, prior=prior, positions=positions)
    if log.counted:
        tell(f"{found.name} fitted to {len(found.pairs):,} query-document pairs, counted")
    else:
        further = "which are predicted here" if held_out is None else f"{held_out.pages:,} held out"
        tell(f"{part.pages:,} pages to fit, {further}", *told_of(part))
        tell(*report([{"model": found.name, **found.evaluate(held_out or part)}]))
    if notes := list(found.notes()):
        tell(*notes)
    if options.out:
        found.save(options.out)
        tell(f"saved in {options.out}")
    return 0


def told_of(log: ClickLog) -> Iterator[str]:
    """What the reader left out, and how much of the log is there again; of pages only."""
    if log.counted:
        return
    yield from seen_lines(log.stored.path)
    if "page_count" not in log.layout.columns:  # Such pages have no order of time.
        yield from copied_lines(log.stored.path)


def report(rows: list[dict[str, Any]]) -> list[str]:
    """A line per model."""
    numbers = ("perplexity", "conditional", "log_likelihood")
    lines = [f"{'model':6} {'perplexity':>10} {'conditional':>11} {'log-likelihood':>15}"]
    for row in rows:
        first, second, third = (row[name] for name in numbers)
        lines.append(f"{row['model']:6} {first:10.4f} {second:11.4f} {third:15.4f}")
    return lines

"""Fit click models to a click log: how well they predict, and what they say of its documents.

    python -m twotowers.clickmodels LOG --format rows --model ubm --out ubm.parquet

Prints the perplexity of held-out pages, and writes the fitted probabilities with their standard
errors and intervals (`twotowers.fitting.information`). `--compare` fits all ten models. Ends with 2
on bad input, and then writes nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import InputError, check_range
from twotowers.files.artefacts import atomic
from twotowers.files.tables import check_types, opened
from twotowers.fitting.information import Intervals, intervals
from twotowers.fitting.pages import (
    PagesEstimate,
    Statistics,
    distinct_pages,
    fit_counts,
    fit_pages,
)
from twotowers.logs.formats import FORMATS, to_sessions
from twotowers.logs.observed_pages import ObservedPages, observed_pages
from twotowers.logs.sessions import seen_in
from twotowers.methods.page_fits import imagined, page_losses, unknown_of
from twotowers.methods.task import Split
from twotowers.models.independent import as_pages
from twotowers.models.names import MODELS
from twotowers.models.page import PageModel
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP, PER_POSITION
from twotowers.running.fit import page_perplexities
from twotowers.running.registry import build_model

COLUMNS = {
    "part": pa.string(),
    "query": None,
    "document": None,
    "position": pa.int32(),
    "last_click": pa.int32(),
    "probability": pa.float64(),
    "error": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "trials": pa.float64(),
    "impressions": pa.int64(),
}
"""Of a file of fitted probabilities; see `write_fitted`."""


def fit_model(
    model: PageModel, pages: ObservedPages, prior: tuple[float, float]
) -> tuple[PagesEstimate, Statistics]:
    """Fit a model to the training pages: in closed form if it can be, else by EM.

    Args:
        model: one of pages.
        pages: with the splits "train" and "test".
        prior: imagined successes and failures.

    Returns:
        the estimate, and what it was fitted to.
    """
    train = pages.sessions["train"]
    number = len(pages.query)
    distinct = distinct_pages(pages.pair[train.query], train.clicks, train.where, pairs=number)
    statistics = Statistics.of_pages(model, distinct)
    if hasattr(model, "counts"):
        return fit_counts(statistics, prior=prior), statistics
    return fit_pages(statistics, prior=prior, tolerance=1e-8), statistics


def perplexities(
    model: PageModel, estimate: PagesEstimate, pages: ObservedPages, prior: tuple[float, float]
) -> dict[str, float]:
    """Mean metrics of the held-out pages, see `twotowers.running.fit.page_perplexities`."""
    unknown = unknown_of(estimate, prior)
    known = {
        part: np.where(np.isnan(values), unknown[part], values)
        for part, values in estimate.parameters.items()
    }
    test = Split(pages.pair, pages.where, None, None, sessions=[pages.sessions["test"]])
    losses = page_losses(model, known, 0)(test)
    rows = page_perplexities(*losses, pages.sessions["test"].where)
    return {metric: value for metric, position, value in rows if position is None}


def write_fitted(
    path: str | Path,
    name: str,
    model: PageModel,
    estimate: PagesEstimate,
    known: dict[str, Intervals],
    pages: ObservedPages,
) -> None:
    """Write the fitted probabilities, all or nothing: a parquet file with a row per parameter.

    Columns: part (attraction, examination, ...); query and document, position (from 1) and
    last_click (0 for none), as far as the part has them; probability; error, its standard error,
    missing where there is none; low and high, an interval of 95 %; trials, the expected number of
    times it was put to the test: what it rests on; and impressions, how often it was shown.
    Documents that were never tried are left out. The file's metadata names the model.
    """
    frames = []
    for part, kind in model.parts.items():
        values, own = estimate.parameters[part], {"part": part}
        if kind == PER_DOCUMENT:
            own |= {"query": pages.query, "document": pages.document}
        if kind == PER_POSITION:
            own |= {"position": np.arange(1, len(values) + 1)}
        if kind == PER_JUMP:
            side = pages.pair.shape[1]
            position, last = np.divmod(np.arange(len(values)), side)
            own |= {"position": position + 1, "last_click": last}
        own |= {"probability": values, "trials": estimate.trials[part], **vars(known[part])}
        frame = pd.DataFrame(own, index=np.arange(len(values)))
        tried = frame["trials"] > 0
        frames.append(frame[tried])
    ids = {column: pa.array(getattr(pages, column)).type for column in ("query", "document")}
    schema = pa.schema([(column, kind or ids[column]) for column, kind in COLUMNS.items()])
    table = pd.concat(frames, ignore_index=True).reindex(columns=list(COLUMNS))
    whole = {"position": "Int32", "last_click": "Int32"}
    for column, kind in ids.items():
        if pa.types.is_integer(kind):
            whole[column] = "Int64"
    written = pa.Table.from_pandas(table.astype(whole), schema=schema, preserve_index=False)
    with atomic(path) as temporary:
        pq.write_table(written.replace_schema_metadata({"model": name}), temporary)


def read_fitted(path: str | Path) -> tuple[str, pd.DataFrame]:
    """The name of the model and the table that `write_fitted` wrote.

    Raises:
        InputError: the file cannot be read, or is no such file.
    """
    with opened(path) as file:
        check_types(file.schema_arrow, COLUMNS, path)
        name = (file.metadata.metadata or {}).get(b"model", b"").decode()
        if name not in MODELS:
            raise InputError(
                f"{name!r} is no model", path=path, field="model", expected=", ".join(MODELS)
            )
        return name, file.read().to_pandas()


def report(names: list[str], found: dict[str, dict[str, float]]) -> Iterator[str]:
    """A line per model."""
    yield f"{'model':6} {'perplexity':>10} {'conditional':>11} {'log-likelihood':>15}"
    for name in names:
        own = found[name]
        yield (
            f"{name:6} {own['mean_perplexity']:10.4f} {own['mean_conditional_perplexity']:11.4f}"
            f" {own['log_likelihood_clax']:15.4f}"
        )


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m twotowers.clickmodels", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    paged = [name for name, each in FORMATS.items() if not each.counted]
    parser.add_argument("log", help="click log, in one of the formats of twotowers.sessions")
    parser.add_argument("--format", required=True, choices=paged, help="of the log")
    parser.add_argument("--model", choices=list(MODELS), default="ubm", help="default: ubm")
    parser.add_argument("--compare", action="store_true", help="fit all ten models")
    parser.add_argument("--out", help="parquet file of the model's probabilities")
    parser.add_argument("--positions", type=int, default=10, help="of the longest page")
    parser.add_argument("--test", type=float, default=0.2, help="share of pages held out")
    parser.add_argument(
        "--prior-mean", type=float, default=0.5,
        help="share of clicks in what the prior imagines: 1/2 as PyClick, or about the log's own",
    )  # fmt: skip
    parser.add_argument("--prior", type=float, default=2.0, help="imagined clicks, plus 1")
    parser.add_argument("--seed", type=int, default=0, help="divides the log")
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    check_range(options.test, field="--test", low=0.001, high=0.999)
    prior = imagined(options.prior, options.prior_mean)
    with tempfile.TemporaryDirectory() as folder:
        sessions = Path(folder) / "sessions.parquet"
        to_sessions(options.log, sessions, format=options.format)
        left_out = seen_in(sessions)
        shares = {"train": 1 - options.test, "test": options.test}
        pages = observed_pages(sessions, shares, positions=options.positions, seed=options.seed)
    train, test = (len(pages.sessions[split].query) for split in shares)
    print(f"{train:,} pages to fit, {test:,} held out, {len(pages.query):,} query-document pairs")
    for what, number in left_out.items():
        print(f"{what.replace('_', ' ')}: {number:,}")
    names = list(MODELS) if options.compare else [options.model]
    found = {}
    for name in names:
        model = as_pages(build_model(MODELS[name]))
        estimate, statistics = fit_model(model, pages, prior)
        found[name] = perplexities(model, estimate, pages, prior)
        if options.out and name == options.model:
            imagine = dict.fromkeys(estimate.parameters, prior)
            known = intervals(statistics, estimate.parameters, prior=imagine)
            write_fitted(options.out, name, model, estimate, known, pages)
    print(*report(names, found), sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())

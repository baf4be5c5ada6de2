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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import InputError, check_range
from twotowers.files.artefacts import atomic
from twotowers.files.tables import check_types, opened
from twotowers.fitting.counted import PageLog
from twotowers.fitting.information import intervals
from twotowers.fitting.pages import PagesEstimate, Statistics, fit_pages
from twotowers.fitting.totals import Totals
from twotowers.logs.formats import FORMATS, to_sessions
from twotowers.logs.observed_pages import divide
from twotowers.logs.page_arrays import PageArrays, read_page_arrays
from twotowers.logs.sessions import seen_in
from twotowers.logs.simulation import Sessions
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


@dataclass(frozen=True)
class FittedLog:
    """A click model fitted to a log.

    Attributes:
        model: the model.
        estimate: its probabilities.
        statistics: what they were fitted to.
        pairs: columns query and document of its query-document pairs, by their number.
        prior: imagined successes and failures.
    """

    model: PageModel
    estimate: PagesEstimate
    statistics: Statistics | Totals
    pairs: pa.Table
    prior: tuple[float, float]


def fit_model(
    model: PageModel, log: PageLog, prior: tuple[float, float], tolerance: float = 1e-8
) -> FittedLog:
    """Fit a model to a log: in closed form if it can be, else by EM.

    Args:
        model: one of pages.
        log: the pages to fit.
        prior: imagined successes and failures.
        tolerance: of EM, see `twotowers.fitting.pages.fit_pages`.
    """
    statistics, pairs = log.statistics(model)
    if isinstance(statistics, Totals):
        estimate = statistics.fit(prior=prior)
    else:
        estimate = fit_pages(statistics, prior=prior, tolerance=tolerance)
    return FittedLog(model, estimate, statistics, pairs, prior)


def perplexities(fitted: FittedLog, pages: PageArrays) -> dict[str, float]:
    """Mean metrics of held-out pages, see `twotowers.running.fit.page_perplexities`."""
    model, unknown = fitted.model, unknown_of(fitted.estimate, fitted.prior)
    known = {
        # What is not in the log has the number behind the last.
        part: np.append(np.where(np.isnan(values), unknown[part], values), unknown[part])
        if model.parts[part] == PER_DOCUMENT
        else np.where(np.isnan(values), unknown[part], values)
        for part, values in fitted.estimate.parameters.items()
    }
    pair, where = _numbers(fitted.pairs, pages)[pages.pair], pages.where
    place = np.broadcast_to(np.arange(where.shape[1]), where.shape)
    sessions = [Sessions(np.arange(len(pair)), place, pages.clicks, where)]
    losses = page_losses(model, known, 0)(Split(pair, where, None, None, sessions=sessions))
    rows = page_perplexities(*losses, where)
    return {metric: value for metric, position, value in rows if position is None}


def _numbers(pairs: pa.Table, pages: PageArrays) -> np.ndarray:
    """[pairs of the pages] their numbers among other pairs, and behind the last if not there."""
    own = pa.table({"query": pages.query, "document": pages.document}).to_pandas()
    numbered = pairs.to_pandas().assign(number=np.arange(len(pairs)))
    found = own.merge(numbered, how="left", on=["query", "document"])["number"]
    return found.fillna(len(pairs)).to_numpy(int)


def write_fitted(path: str | Path, name: str, fitted: FittedLog) -> None:
    """Write the fitted probabilities, all or nothing: a parquet file with a row per parameter.

    Columns: part (attraction, examination, ...); query and document, position (from 1) and
    last_click (0 for none), as far as the part has them; probability; error, its standard error,
    missing where there is none; low and high, an interval of 95 %; trials, the expected number of
    times it was put to the test: what it rests on; and impressions, how often it was shown.
    Documents that were never tried are left out. The file's metadata names the model.
    """
    estimate, pairs, frames = fitted.estimate, fitted.pairs, []
    prior = dict.fromkeys(estimate.parameters, fitted.prior)
    known = intervals(fitted.statistics, estimate.parameters, prior=prior)
    for part, kind in fitted.model.parts.items():
        values, own = estimate.parameters[part], {"part": part}
        if kind == PER_DOCUMENT:
            own |= {column: pairs[column].to_numpy() for column in pairs.column_names}
        if kind == PER_POSITION:
            own |= {"position": np.arange(1, len(values) + 1)}
        if kind == PER_JUMP:
            position, last = np.divmod(np.arange(len(values)), round(len(values) ** 0.5))
            own |= {"position": position + 1, "last_click": last}
        own |= {"probability": values, "trials": estimate.trials[part], **vars(known[part])}
        frame = pd.DataFrame(own, index=np.arange(len(values)))
        tried = frame["trials"] > 0
        frames.append(frame[tried])
    ids = {column.name: column.type for column in pairs.schema}
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
        size = to_sessions(options.log, sessions, format=options.format)
        left_out = seen_in(sessions)
        shares = {"train": 1 - options.test, "test": options.test}
        rows = divide(size, shares, seed=options.seed, path=sessions)
        held_out = np.isin(np.arange(size), rows["test"])
        log = PageLog(sessions, options.positions, ~held_out)
        test = read_page_arrays(sessions, positions=options.positions, rows=held_out)
        print(f"{len(rows['train']):,} pages to fit, {len(rows['test']):,} held out")
        for what, number in left_out.items():
            print(f"{what.replace('_', ' ')}: {number:,}")
        names = list(MODELS) if options.compare else [options.model]
        found = {}
        for name in names:
            fitted = fit_model(as_pages(build_model(MODELS[name])), log, prior)
            found[name] = perplexities(fitted, test)
            if options.out and name == options.model:
                write_fitted(options.out, name, fitted)
    print(*report(names, found), sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())

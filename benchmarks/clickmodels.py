"""Ten click models: seconds from a file of sessions to parameters and standard errors.

The log is the stand-in for WSCD-2012 (`twotowers.standins.wscd`). EM stops at TOLERANCE, which
is timed, and then goes on to CONVERGED, which is not: both conditional perplexities of held-out
pages are stated. Scans of the same file and DuckDB's own group-by are timed in the same run.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import islice

import numpy as np

from benchmarks.counting import THREADS, group_by
from benchmarks.measure import CACHE, child, peak, seconds
from twotowers.fits import fitting
from twotowers.fits.fit import Fit, means_of
from twotowers.fits.models import model_of
from twotowers.fitting.em import Estimate, fit_counts, fit_em
from twotowers.fitting.prior import Prior, pseudo_counts
from twotowers.fitting.statistics import Statistics
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import page_arrays
from twotowers.logs.sessions import write_sessions
from twotowers.models.names import MODELS
from twotowers.standins.wscd import LAW, generate_pages

SIZES = {
    "full": {"sessions": 10_000_000, "held_out": 500_000},
    "quick": {"sessions": 2_000, "held_out": 500},
}
HERE = "benchmarks.clickmodels"
LENGTH = 10
PRIOR = pseudo_counts(2, 0.5)
"""As `twotowers fit --prior 2`: one imagined click in two trials."""
TOLERANCE, CONVERGED = 3e-4, 1e-5
"""EM stops when a cycle improves its objective by less than this share: first the timed fit, then
the fit that goes on from there."""
MEMORY = "6GB"
"""The memory that DuckDB may use."""
PUBLISHED = {
    "pbm": 121, "ubm": 148, "dbn": 270, "sdbn": 266, "ccm": 112, "dcm": 152, "cm": 136,
    "dctr": 135, "rctr": 56, "gctr": 53,
}  # fmt: skip
"""Seconds of CLAX on an NVIDIA A6000 at 10 M sessions of WSCD-2012."""


def run(*, sessions: int, held_out: int) -> Iterator[dict]:
    """Yield a row for each scan, for each fit, and for the standard errors of each."""
    log = log_of(sessions, held_out)
    scan = child("benchmarks.counting:time_scan", path=f"{log}/train.parquet")
    yield {"what": "plain scan", **scan}
    yield {"what": "group-by, DuckDB", **child(f"{HERE}:time_group_by", log=log)}
    for name in MODELS:
        progress(f"fitting {name} to {sessions:,} sessions")
        row = {"model": name, "sessions": sessions}
        yield {"what": "fit", **row, **child(f"{HERE}:time_fit", log=log, name=name)}
        if model_of(name)[1].counts is None:
            yield {"what": "errors", **row, **child(f"{HERE}:time_errors", log=log, name=name)}


def progress(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def log_of(sessions: int, held_out: int) -> str:
    """A folder with train.parquet and test.parquet, made once for each law of the stand-in."""
    law = sha256(repr(LAW).encode()).hexdigest()[:8]
    folder = CACHE / "clickmodels" / f"{sessions}-{law}"
    if not (folder / "test.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        held_out = min(held_out, sessions // 4)
        progress(f"writing a log of {sessions:,} sessions, and {held_out:,} held out")
        child(f"{HERE}:generate", folder=str(folder), train=sessions, test=held_out)
    return str(folder)


def generate(*, folder: str, train: int, test: int) -> dict:
    """Write two files of a stand-in's pages: the first pages to train on, the next ones to test."""
    pages = (
        batch.slice(start, 1000)
        for batch in generate_pages(sessions=train + test, seed=0)
        for start in range(0, len(batch), 1000)
    )
    for name, size in (("train", train), ("test", test)):
        write_sessions(f"{folder}/{name}.parquet", islice(pages, -(-size // 1000)))
    return {}


def time_group_by(*, log: str) -> dict:
    """Seconds of DuckDB's own count of impressions and clicks of pairs."""
    import duckdb

    with duckdb.connect(config={"memory_limit": MEMORY, "threads": THREADS}) as connection:
        query = group_by(f"{log}/train.parquet", "query, document")
        return {"seconds": seconds(lambda: connection.execute(f"CREATE TABLE pairs AS {query}"))}


def time_fit(*, log: str, name: str) -> dict:
    """Seconds from the file to statistics, and on to parameters; and held-out perplexity."""
    model, start = model_of(name)[1], time.perf_counter()
    statistics, pairs = Statistics.of_log(model, Log.read(f"{log}/train.parquet"), LENGTH)
    counted, read = model.counts is not None, time.perf_counter()
    estimate = estimated(statistics, PRIOR, TOLERANCE)
    measured = {"read": read - start, "seconds": time.perf_counter() - start, "fit_gb": peak()}
    measured |= {"pairs": len(pairs)} | ({} if counted else {"rows": len(statistics.number)})
    fitted = Fit(name, model, LENGTH, estimate, pairs)
    test = page_arrays(Log.read(f"{log}/test.parquet"), positions=LENGTH)
    measured |= {"cycles": max(len(estimate.history) - 1, 0), **means_of(*fitted.losses(test))}
    if not counted:
        known = estimate.parameters
        after = fit_em(statistics, start=known, prior=PRIOR, tolerance=CONVERGED)
        final = means_of(*replace(fitted, estimate=after).losses(test))["conditional"]
        measured |= {"converged": final, "further": len(after.history) - 1}
    return measured


def estimated(statistics: Statistics, prior: Prior, tolerance: float) -> Estimate:
    if statistics.model.counts is not None:
        return fit_counts(statistics, prior=prior)
    return fit_em(statistics, prior=prior, tolerance=tolerance)


def against_clax(rows: list[dict]) -> list[dict]:
    """The fits, with CLAX's published seconds and those of the plainest work."""
    plain = {row["what"]: row["seconds"] for row in rows if row["what"] not in ("fit", "errors")}
    scan, group_by = plain["plain scan"], plain["group-by, DuckDB"]
    least = {"gctr": scan, "rctr": scan, "dctr": group_by, "cm": group_by}
    return [
        row | {"plain": least.get(row["model"]), "published": PUBLISHED[row["model"]]}
        | {"faster": PUBLISHED[row["model"]] / row["seconds"]}
        for row in rows
        if row["what"] == "fit"
    ]  # fmt: skip


def time_errors(*, log: str, name: str) -> dict:
    """Seconds of the errors, and of EM before them; gigabytes; the share that has an error."""
    model = model_of(name)[1]
    statistics, _ = Statistics.of_log(model, Log.read(f"{log}/train.parquet"), LENGTH)
    start = time.perf_counter()
    fitted = fit_em(statistics, prior=PRIOR, tolerance=fitting.TOLERANCE)
    ended, before = time.perf_counter(), peak()
    errors = np.concatenate([each.error for each in fitted.intervals.values()])
    measured = {"estimation": ended - start, "errors": time.perf_counter() - ended}
    known = float(np.isfinite(errors).mean())
    return measured | {"fit_gb": before, "number": len(errors), "with_error": known}

"""Standard errors of click models: seconds and memory, by sessions.

The logs are those of `benchmarks.clickmodels`. EM goes on to CONVERGED, as `twotowers fit` does,
before the errors are timed: without an optimum, curvature says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.clickmodels import LENGTH, MEMORY, PRIOR, THREADS, log_of, needs_pages, progress
from benchmarks.measure import child, peak
from twotowers.face.fits import model_of
from twotowers.fitting.counted import PageLog
from twotowers.fitting.em import fit_em
from twotowers.fitting.statistics import Statistics

SIZES = {
    "full": {"sessions": [1_000_000, 10_000_000], "held_out": 500_000},
    "quick": {"sessions": [2_000], "held_out": 500},
}
CONVERGED = 1e-8
HIDDEN = ("pbm", "ubm", "dcm", "ccm", "dbn", "sdbn")


def run(*, sessions: list[int], held_out: int) -> Iterator[dict]:
    """Yield a row per number of sessions and model."""
    for number in sessions:
        log = log_of(number, held_out)
        for name in HIDDEN:
            progress(f"errors of {name} at {number:,} sessions")
            found = child(f"{__name__}:time_errors", log=log, name=name)
            yield {"model": name, "sessions": number, **found}


def time_errors(*, log: str, name: str) -> dict:
    """Seconds of the errors, and of EM before them; gigabytes; the share that has an error."""
    model = model_of(name)[1]
    whole = PageLog(f"{log}/train.parquet", LENGTH, memory=MEMORY, threads=THREADS)
    if needs_pages(model):
        statistics = Statistics.of_pages(model, whole.distinct)
        del whole
    else:
        statistics, _ = whole.statistics(model)
    start = time.perf_counter()
    fitted = fit_em(statistics, prior=PRIOR, tolerance=CONVERGED)
    ended, before = time.perf_counter(), peak()
    errors = np.concatenate([each.error for each in fitted.intervals.values()])
    return {
        "estimation": ended - start,
        "errors": time.perf_counter() - ended,
        "fit_gb": before,
        "number": len(errors),
        "told": float(np.isfinite(errors).mean()),
    }

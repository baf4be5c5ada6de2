"""Standard errors of click models: seconds and memory, by sessions.

The logs are those of `benchmarks.clickmodels`. EM goes on to TOLERANCE, as `twotowers fit` does,
before the errors are timed: away from an optimum, curvature says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.clickmodels import LENGTH, PRIOR, log_of, progress
from benchmarks.measure import child, peak
from twotowers.fits.fitting import TOLERANCE
from twotowers.fits.models import model_of
from twotowers.fitting.em import fit_em
from twotowers.fitting.statistics import sufficient
from twotowers.logs.log import Log
from twotowers.models.names import MODELS

SIZES = {
    "full": {"sessions": [1_000_000, 10_000_000], "held_out": 500_000},
    "quick": {"sessions": [2_000], "held_out": 500},
}


def run(*, sessions: list[int], held_out: int) -> Iterator[dict]:
    """Yield a row for each model with hidden events, at each number of sessions."""
    hidden = [name for name in MODELS if model_of(name)[1].counts is None]
    for number in sessions:
        log = log_of(number, held_out)
        for name in hidden:
            progress(f"errors of {name} at {number:,} sessions")
            found = child(f"{__name__}:time_errors", log=log, name=name)
            yield {"model": name, "sessions": number, **found}


def time_errors(*, log: str, name: str) -> dict:
    """Seconds of the errors, and of EM before them; gigabytes; the share that has an error."""
    model = model_of(name)[1]
    statistics, _ = sufficient(model, Log.read(f"{log}/train.parquet"), LENGTH)
    start = time.perf_counter()
    fitted = fit_em(statistics, prior=PRIOR, tolerance=TOLERANCE)
    ended, before = time.perf_counter(), peak()
    errors = np.concatenate([each.error for each in fitted.intervals.values()])
    return {
        "estimation": ended - start,
        "errors": time.perf_counter() - ended,
        "fit_gb": before,
        "number": len(errors),
        "with_error": float(np.isfinite(errors).mean()),
    }

"""Curves of examination from sessions on disk: conditional, and sequential with its test."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.counting import LENGTH
from benchmarks.measure import CACHE, ONE_THREAD, child, seconds
from twotowers.analysis.propensities import CONDITIONAL, SEQUENTIAL, Propensities, propensities
from twotowers.logs.click_log import read_log

SIZES = {"full": {"pages": [10**5, 10**6, 10**7]}, "quick": {"pages": [2000]}}
PAGES_OF_A_QUERY = 10
"""On average."""


def run(*, pages: Sequence[int]) -> Iterator[dict]:
    """Yield a row per size and estimator."""
    folder = CACHE / "curves"
    folder.mkdir(parents=True, exist_ok=True)
    for number in pages:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            path = str(Path(scratch) / "sessions.parquet")
            sizes = {"pages": number, "queries": number // PAGES_OF_A_QUERY}
            child("benchmarks.counting:generate", path=path, **sizes)
            for estimator in (CONDITIONAL, SEQUENTIAL):
                how = {"path": path, "estimator": estimator}
                measured = child(f"{__name__}:estimate", environment=ONE_THREAD, **how)
                yield {"estimator": estimator, "impressions": number * LENGTH, **measured}


def estimate(*, path: str, estimator: str) -> dict:
    """Seconds of file -> curve, by the clock and of processors; and the curve's last estimate."""
    curves: list[Propensities] = []

    def work() -> None:
        curve = propensities(read_log(path, ordered=True), estimator=estimator)
        curves.append(curve)
        if curve.feedback is not None:
            curve.feedback.test  # noqa: B018 (which is computed)

    clock = seconds(work)
    last = float(curves[0].curve.estimate[-1])
    return {"seconds": clock, "processor": time.process_time(), "last": last}

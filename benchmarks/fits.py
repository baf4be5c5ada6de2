"""Fits of the same log to the same loss: by counts, and by session replay."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import ROOT, child
from benchmarks.replay import Arrays, replay
from benchmarks.worlds import SEED, cells_of, log
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import load_paper
from twotowers.files.yamls import read_yaml
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.logs.counts import Counts
from twotowers.logs.simulation import Sessions
from twotowers.methods.descent import count_loss
from twotowers.methods.task import Split
from twotowers.towers.two_towers import two_towers

SIZES = {
    "full": {"sessions": 1_000_000, "queries": 3000, "epochs": 50},
    "quick": {"sessions": 4000, "queries": 60, "epochs": 2},
}
TOWERS = ("linear", "deep")
TEMPERATURE = 0.333
MIN_DELTA = 1e-5
"""Smallest decrease that early stopping counts. Losses closer than this are the same."""

REPLAY = {"learning_rate": 0.003, "batch": 512, "patience": 3, "min_delta": MIN_DELTA}
"""The training of the published code of Hager et al. 2025."""

SETTINGS = {"linear": "fit-linear", "deep": "example-deep"}
"""Settings that train on counts. The deep tower is as in Figures 1 and 5."""

METHODS = ("counts", "replay")


def run(*, sessions: int, queries: int, epochs: int) -> Iterator[dict]:
    """Yield a row per method and tower, the slowest last."""
    for method in METHODS:
        for tower in TOWERS:
            fitted = child(
                "benchmarks.fits:fit_log",
                method=method,
                tower=tower,
                queries=queries,
                sessions=sessions,
                epochs=epochs,
            )
            row = {"tower": tower, "method": method, "sessions": sessions}
            yield {**row, **fitted}


def fit_log(*, method: str, tower: str, queries: int, sessions: int, epochs: int) -> dict:
    """Simulate a log, and fit it. Returns what `replay` returns."""
    size = {"queries": queries, "sessions": sessions, "temperature": TEMPERATURE}
    data = [log(tower, split, **size) for split in ("train", "validation")]
    features = data[0][0]
    model = two_towers(
        tower, width=features.shape[-1], pairs=0, positions=features.shape[1], seed=SEED
    )
    if method == "counts":
        objectives = [from_counts(*split) for split in data]
        del data
        return timed_fit(model, objectives, counts_settings(tower, epochs), seed=SEED)
    steps = -(-sessions // REPLAY["batch"])
    settings = FitSettings(**REPLAY, steps=steps, epochs=epochs)
    return replay(model, *(Arrays(*split) for split in data), settings, seed=SEED)


def counts_training(setting: str) -> dict:
    """The training of one of the pipeline's settings at scale laptop."""
    config = read_config(read_yaml(ROOT / "config.yaml") | {"scale": "laptop"})
    return load_paper("hager2025", config).settings[setting].training.arguments()


def counts_settings(tower: str, epochs: int) -> FitSettings:
    """The training of a tower on counts, always averaged.

    Without averaging, the noise of the last batches would be most of the difference of two fits.
    """
    training = counts_training(SETTINGS[tower]) | {"epochs": epochs, "averaged": True}
    return FitSettings(**training)


def from_counts(features: np.ndarray, sessions: Sessions):
    """The objective on counts, as in `twotowers.jobs.fit`."""
    counts = cells_of(sessions, len(features))
    narrow = np.min_scalar_type(int(counts.impressions.max()))
    lane = Counts(counts.impressions[None].astype(narrow), counts.clicks[None].astype(narrow))
    return count_loss(Split(features, np.ones(features.shape[:2], bool), None, lane))


def timed_fit(model, objectives, settings: FitSettings, *, seed: int) -> dict:
    """Fit twice: the first call compiles, the second is timed.

    A fit is one compiled program. Its epochs do the same work, so its time is spread evenly.
    """
    elapsed = []
    for _ in range(2):
        start = time.perf_counter()
        found = fit(model, *objectives, settings, lanes=1, seed=seed)
        elapsed.append(time.perf_counter() - start)
    epochs = int(found.epochs[0])
    return {
        "compilation": elapsed[0] - elapsed[1],
        "seconds": (elapsed[1] / epochs * np.arange(1, epochs + 1)).tolist(),
        "nll": found.history[:epochs, 0].tolist(),
        "bias": np.asarray(found.model(0).position_bias).tolist(),
    }


def summary(rows: list[dict], baseline: str = "replay") -> list[dict]:
    """A row per tower and method: to a common loss, and against the baseline.

    The target is the lowest validation loss of the baseline, plus the difference that early
    stopping ignores. Values that were not measured, or not reached, are None.

    Args:
        rows: as `run` yields them.
        baseline: the method to compare times and position bias with.
    """
    base = {row["tower"]: row for row in rows if row["method"] == baseline}
    table = []
    for row in rows:
        reference = base.get(row["tower"])
        target = min(reference["nll"]) + MIN_DELTA if reference else -np.inf
        own = time_to(row, target)
        theirs = reference and time_to(reference, target)
        table.append(
            {
                "tower": row["tower"],
                "method": row["method"],
                "lowest": min(row["nll"]),
                "to_target": own,
                "peak_gb": row["peak_gb"],
                "off": reference and bias_difference(row, reference),
                "faster": theirs / own if own and theirs else None,
            }
        )
    return table


def bias_difference(row: dict, reference: dict) -> float:
    """Largest difference at any position, relative to the first position."""
    off = np.subtract(row["bias"], reference["bias"])
    return float(np.abs(off - off[0]).max())


def time_to(row: dict, target: float) -> float | None:
    """Seconds until the validation loss is first at or below the target; None if never."""
    reached = np.flatnonzero(np.array(row["nll"]) <= target)
    return row["seconds"][reached[0]] if len(reached) else None

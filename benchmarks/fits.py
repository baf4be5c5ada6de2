"""Fits of the same log by counts and by sessions, and by session replay, to the same loss."""

from __future__ import annotations

import time
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from benchmarks.measure import ONE_THREAD, ROOT, child
from benchmarks.replay import Arrays, Samples, replay
from benchmarks.worlds import SEED, read_log, write_log
from twotowers.clicks import Counts, Sessions
from twotowers.experiments import load_experiment
from twotowers.fitting import FitSettings, fit
from twotowers.methods import count_loss
from twotowers.objectives import SessionLoss
from twotowers.towers import two_towers
from twotowers.yamls import read_yaml

SIZES = {
    "full": {"sessions": 1_000_000, "queries": 3000, "epochs": 50},
    "quick": {"sessions": 4000, "queries": 60, "epochs": 2},
}
TOWERS = ("linear", "deep")
TEMPERATURE = 0.333
MIN_DELTA = 1e-5
"""Smallest decrease that early stopping counts: losses closer than this are the same."""

REPLAY = {"learning_rate": 0.003, "batch": 512, "patience": 3, "min_delta": MIN_DELTA}
"""As the published code of Hager et al. 2025 trains."""

REPLAYS = {"arrays": Arrays, "samples": Samples}

METHODS = (
    ("counts", "counts", {}, SEED),
    ("counts, one thread", "counts", ONE_THREAD, SEED),
    ("sessions", "sessions", {}, SEED),
    ("replay, arrays", "arrays", {}, SEED),
    # How far replay is from itself when only its batches come in another order.
    ("replay, arrays, reordered", "arrays", {}, SEED + 1),
    ("replay, samples", "samples", {}, SEED),
)
"""Name, method, environment, and the seed that orders the batches."""


def run(*, sessions: int, queries: int, epochs: int) -> Iterator[dict]:
    """Yield a row per tower and method."""
    for tower in TOWERS:
        log = str(write_log(tower, queries, sessions, TEMPERATURE))
        for name, method, environment, seed in METHODS:
            found = child(
                "benchmarks.fits:fit_log",
                environment=environment,
                method=method,
                tower=tower,
                log=log,
                epochs=epochs,
                seed=seed,
            )
            yield {"tower": tower, "method": name, "sessions": sessions, **found}


def fit_log(*, method: str, tower: str, log: str, epochs: int, seed: int) -> dict:
    """Fit the file of a log, its batches ordered by `seed`; what `replay` returns."""
    data = [read_log(log, split) for split in ("train", "validation")]
    features, sessions = data[0]
    model = two_towers(
        tower,
        width=features.shape[-1],
        pairs=0,
        positions=features.shape[1],
        seed=SEED,
    )
    steps = -(-len(sessions.query) // REPLAY["batch"])
    settings = FitSettings(**REPLAY, steps=steps, epochs=epochs)
    if method == "counts":
        objectives = [from_counts(*split) for split in data]
        settings = FitSettings(**counts_training(tower) | {"epochs": epochs})
        del data, sessions
        return timed_fit(model, objectives, settings, seed=seed)
    if method == "sessions":
        objectives = [from_sessions(*split) for split in data]
        return timed_fit(model, objectives, settings, seed=seed)
    return replay(model, *(REPLAYS[method](*split) for split in data), settings, seed=seed)


def counts_training(tower: str) -> dict:
    """How the pipeline trains this tower at scale laptop."""
    config = read_yaml(ROOT / "config.yaml") | {"scale": "laptop"}
    return load_experiment("hager2025", config).training[tower]


def from_counts(features: np.ndarray, log: Sessions):
    """The objective on counts, as `twotowers.methods` lays it out."""
    counts = log.counts(len(features))
    narrow = np.min_scalar_type(int(counts.impressions.max()))
    lane = Counts(counts.impressions[None].astype(narrow), counts.clicks[None].astype(narrow))
    return count_loss(features, lane, np.ones(features.shape[:2], bool))


def from_sessions(features: np.ndarray, log: Sessions) -> SessionLoss:
    """The objective on sessions, one lane."""
    columns = (log.query, log.documents, log.clicks, log.where)
    return SessionLoss(jnp.asarray(features), *(jnp.asarray(column)[None] for column in columns))


def timed_fit(model, objectives, settings: FitSettings, *, seed: int) -> dict:
    """Fit twice: the first call compiles, the second is timed.

    A fit is one compiled program whose epochs do the same work, so its time is spread evenly.
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


def summary(rows: list[dict], baselines: tuple[str, ...]) -> list[dict]:
    """A row per tower and method: to a common loss, and against the baselines.

    The target is the lowest validation loss of the first baseline, plus what early stopping
    takes for the same. What was not measured, or never got there, is None.
    """
    found = []
    for row in rows:
        reference = _find(rows, row["tower"], baselines[0])
        target = min(reference["nll"]) + MIN_DELTA if reference else None
        off = reference and np.subtract(row["bias"], reference["bias"])
        found.append(
            {
                "tower": row["tower"],
                "method": row["method"],
                "sessions": row["sessions"],
                "lowest": min(row["nll"]),
                "epochs": len(row["nll"]),
                "to_target": reference and time_to(row, target),
                "compilation": row["compilation"],
                "per_epoch": row["seconds"][-1] / len(row["seconds"]),
                "peak_gb": row["peak_gb"],
                "bias_off": None if off is None else float(np.abs(off - off[0]).max()),
            }
        )
    for row in found:
        for baseline in baselines:
            row[f"against {baseline}"] = ratio(_find(found, row["tower"], baseline), row)
    return found


def _find(rows: list[dict], tower: str, method: str) -> dict | None:
    return next((row for row in rows if (row["tower"], row["method"]) == (tower, method)), None)


def time_to(row: dict, target: float) -> float | None:
    """Seconds until the validation loss is first at or below the target; None if never."""
    reached = np.flatnonzero(np.array(row["nll"]) <= target)
    return row["seconds"][reached[0]] if len(reached) else None


def ratio(slow: dict | None, fast: dict) -> float | None:
    """How many times as long the slow one takes to the target; None where either is unknown."""
    if slow is None or slow["to_target"] is None or fast["to_target"] is None:
        return None
    return slow["to_target"] / fast["to_target"]

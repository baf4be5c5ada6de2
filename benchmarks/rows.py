"""Steps on all rows of a table, and on the used ones: time by table size, and what they fit.

Time is that of the processor. Other work on the machine lengthens it too, so compare ratios of one
run.

Expected before any fit was run: at the same learning rate, used rows learn more slowly. Adam on all
rows moves a rare row for some 1 / (1 - .9) = 10 steps after each use, by its decaying moment, and
on used rows it moves the row once. So the best learning rate on used rows is higher, and the best
losses of both are near each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.measure import ONE_THREAD, child
from benchmarks.worlds import PAGE, SEED, wscd
from twotowers.claims.metrics import perplexity
from twotowers.experiment.kinds import build_model
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.losses.likelihood import SessionLoss
from twotowers.methods.descent import session_loss
from twotowers.methods.held_out import page_losses
from twotowers.models.document_rate import DocumentRate
from twotowers.splits import SPLITS
from twotowers.towers.baseline import BaselineTower
from twotowers.towers.page_towers import PageTowers

SIZES = {
    "full": {
        "pages": 40_000,
        "models": ["document_rate", "position_based"],
        "rates": [0.003, 0.01, 0.03, 0.1, 0.3],
        "tables": [10**5, 10**6, 10**7, 10**8],
    },
    "quick": {"pages": 1000, "models": ["document_rate"], "rates": [0.1], "tables": [1000]},
}
UPDATES = {
    "all rows, AdamW": {"optimizer": "adamw", "weight_decay": 1e-4},
    "all rows, Adam": {"optimizer": "adam"},
    "used rows, AdamW": {"optimizer": "adamw", "weight_decay": 1e-4, "rows": True},
}
BATCH = 512
PAGES = 8192
"""Pages of the log whose steps are timed. They show random rows of the table."""

FEW = 4
"""Steps of the shorter of two epochs that are timed. Their difference is the time of steps, and
what is left is the time of an epoch without steps."""


def run(*, pages: int, models: list[str], rates: list[float], tables: list[int]) -> Iterator[dict]:
    """Yield a row per model, update and learning rate, and one per table size and update."""
    for model in models:
        for update in UPDATES:
            fits = child(
                "benchmarks.rows:fit_standin",
                environment=ONE_THREAD,
                **{"model": model, "update": update, "pages": pages, "rates": rates},
            )
            shared = {"what": "fit", "model": model, "update": update, "pairs": fits["pairs"]}
            yield from (shared | row for row in fits["rows"])
    for table in tables:
        every, used = (
            child("benchmarks.rows:time_steps", environment=ONE_THREAD, table=table, rows=rows)
            for rows in (False, True)
        )
        yield {
            "what": "step",
            "table": table,
            **{f"all {key}": value for key, value in every.items()},
            **{f"used {key}": value for key, value in used.items()},
        }


def fit_standin(*, model: str, update: str, pages: int, rates: list[float]) -> dict:
    """Fits to a stand-in for WSCD-2012 with early stopping, a lane per learning rate."""
    log, splits = wscd(pages)
    lanes = [(0, "none")] * len(rates)
    train, validation = (session_loss(splits[split], lanes) for split in SPLITS[:2])
    # Patience and min_delta are those of Hager, Zoeter and de Rijke (clax2025).
    settings = FitSettings(
        learning_rate=rates[0],
        batch=BATCH,
        steps=max(train.units // BATCH, 1),
        epochs=200,
        patience=1,
        min_delta=1e-5,
        **UPDATES[update],
    )
    towers = PageTowers(build_model(model), BaselineTower, len(log.ids), PAGE, rngs=nnx.Rngs(SEED))
    found = fit(
        towers,
        train,
        validation,
        settings,
        lanes=len(rates),
        seed=SEED,
        varied={"learning_rate": rates},
    )
    test = splits["test"]
    shown = test.sessions[0].where
    position = np.broadcast_to(np.arange(PAGE), shown.shape)
    losses = (page_losses(found.model(lane), test, 0)[0] for lane in range(len(rates)))
    held_out = [perplexity(each, shown, position).mean() for each in losses]
    columns = rates, found.epochs.tolist(), found.loss.tolist(), held_out
    names = "learning_rate", "epochs", "validation", "perplexity"
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return {"pairs": len(log.ids), "rows": rows}


def time_steps(*, table: int, rows: bool) -> dict:
    """Seconds of a step and of an epoch without steps, on a table of this many rows."""
    rng = np.random.default_rng(SEED)

    def pages(number: int) -> SessionLoss:
        shape = 1, number, PAGE
        return SessionLoss(
            inputs=jnp.asarray(rng.integers(table, size=shape[1:]), jnp.int32),
            query=jnp.arange(number)[None],
            documents=jnp.asarray(np.broadcast_to(np.arange(PAGE, dtype=np.uint8), shape)),
            clicks=jnp.asarray(rng.random(shape) < 0.3),
            where=jnp.ones(shape, bool),
        )

    train, validation = pages(PAGES), pages(64)
    model = PageTowers(DocumentRate(), BaselineTower, table, PAGE, rngs=nnx.Rngs(SEED))
    many = FEW + (500 if rows else max(10**8 // table, 8))
    seconds = {}
    for steps in (FEW, many):
        settings = FitSettings(
            learning_rate=0.01,
            batch=BATCH,
            steps=steps,
            epochs=1,
            patience=1,
            min_delta=0,
            rows=rows,
        )
        # The first compiles.
        for _ in range(3):
            start = time.process_time()
            fit(model, train, validation, settings, lanes=1, seed=SEED)
            seconds[steps] = min(time.process_time() - start, seconds.get(steps, np.inf))
    step = (seconds[many] - seconds[FEW]) / (many - FEW)
    return {"step": step, "epoch": seconds[FEW] - FEW * step}

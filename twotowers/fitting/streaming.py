"""Gradient fits to pages that are read while training goes on.

The steps are those of `twotowers.fitting.gradient`, on pieces of the log. A piece is shuffled
already, so its batches are one after the other.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from twotowers.files.checkpoints import Checkpoint
from twotowers.fitting.gradient import Fit, FitSettings, finished, report, started
from twotowers.fitting.lane_steps import LaneStates, judged, stepping
from twotowers.logs.described import inputs_of
from twotowers.logs.page_stream import PageStream, Rows
from twotowers.losses.likelihood import SessionLoss
from twotowers.randomness import stream

PIECE = 1 << 17
"""Pages of a piece, about."""
SECONDS = 30.0
"""Between two checkpoints."""


@dataclass(frozen=True, eq=False)
class StreamLoss:
    """The objective of `SessionLoss` on the pages of a stream.

    `given` has by name [rows, ...] what towers read; without one, they read the numbers of rows.
    """

    pages: PageStream
    given: Mapping[str, Any]

    @cached_property
    def units(self) -> int:
        """Pages to train on."""
        return self.pages.units

    @cached_property
    def tables(self) -> dict[str, jax.Array]:
        """What towers read, on the device."""
        return {name: jnp.asarray(each) for name, each in self.given.items()}

    def of(self, rows: Rows) -> SessionLoss:
        """The objective on some pages."""
        shape = rows["where"].shape
        place = np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape)
        query = np.arange(shape[0], dtype=np.int32)
        columns = (each[None] for each in (query, place, rows["clicks"], rows["where"]))
        return SessionLoss(inputs_of(rows, self.tables), *map(jnp.asarray, columns))


def fit_stream(
    model: Any,
    train: StreamLoss,
    validation: Any,
    settings: FitSettings,
    *,
    seed: int,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Train on a stream of pages, as `twotowers.fitting.gradient.fit` does, in known `steps`."""
    assert settings.steps is not None  # A pass over the log, unless a user says it.
    graph, state, now = started(model, settings, None, 1)
    kept = Checkpoint.of(checkpoint, settings, seed, validation)
    (epoch, step), now = kept.load((0, 0), now)
    sizes = _sizes(settings, epoch, step)
    skipped = (epoch * settings.steps + step) * settings.batch
    pieces = train.pages.pieces(seed, (size * settings.batch for size in sizes), skipped)
    saved = time.monotonic()
    while epoch < settings.epochs and now.running.any():
        keys = stream("keys", seed, epoch).integers(
            2**32, size=(settings.steps, 2), dtype=np.uint32
        )
        while step < settings.steps:
            objective = train.of(next(pieces))
            steps = objective.units // settings.batch
            batches = np.arange(objective.units, dtype=np.int32).reshape(steps, settings.batch)
            batches = batches, keys[step : step + steps]
            now = _through(graph, state, now, batches, objective, settings)
            step += steps
            if step < settings.steps and time.monotonic() - saved > SECONDS:
                kept.save((epoch, step), now)
                saved = time.monotonic()
        now = _ended(graph, state, epoch, now, validation, settings)
        epoch, step = epoch + 1, 0
        kept.save((epoch, step), now)
        report(settings, now, epoch, 1)
    pieces.close()
    kept.remove()
    return finished(graph, state, now, 1)


def _sizes(settings: FitSettings, epoch: int, step: int) -> Iterator[int]:
    """Steps of each piece, from a step of an epoch on. An epoch begins with a piece."""
    most = max(PIECE // settings.batch, 1)
    steps = settings.steps or 1
    whole = [min(most, steps - start) for start in range(0, steps, most)]
    return chain(whole[step // most :], chain.from_iterable(repeat(whole)))


@partial(jax.jit, static_argnames=("graph", "settings"))
def _through(graph, template, now: LaneStates, batches, train, settings) -> LaneStates:
    all_lanes_step = stepping(graph, template, train, settings)

    def step(carry, batch):
        key = jax.random.wrap_key_data(batch[1])
        return all_lanes_step(*carry, batch[0], now.lane, now.optimised, key, None), None

    start = now.params, now.rest, now.average, now.optimizer
    params, rest, average, optimizer = jax.lax.scan(step, start, batches)[0]
    return replace(now, params=params, rest=rest, average=average, optimizer=optimizer)


@partial(jax.jit, static_argnames=("graph", "settings"))
def _ended(graph, template, number, now: LaneStates, validation, settings) -> LaneStates:
    stepped = now.params, now.rest, now.average, now.optimizer
    return judged(graph, template, number, now, stepped, validation, settings)

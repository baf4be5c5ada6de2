"""What methods share that train towers by gradient descent: towers, objectives, and the descent.

The objectives are those of clicks as counts (`count_loss`) and as sessions (`session_loss`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np
from flax import nnx

from twotowers.fitting.gradient import Fit, FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.fitting.streaming import StreamLoss, fit_stream
from twotowers.logs.described import Several
from twotowers.losses.likelihood import CountLoss, SessionLoss
from twotowers.methods.task import Split, Task
from twotowers.models.protocol import CellModel
from twotowers.towers.two_towers import TwoTowers, two_towers

Weighting = Literal["none", "ips", "impressions", "queries"]
"""How impressions are weighted:

- "none": each session has weight 1, spread equally over its documents;
- "ips": "none", with each impression divided by its display propensity;
- "impressions": each impression has weight 1, so long lists count more;
- "queries": each cell that was shown has weight 1, however often it was shown, with its click rate
  as the click."""

PAGE_COLUMNS = "query", "documents", "clicks", "where"
"""What the objective reads of `Sessions`."""

Lanes = list[tuple[int, str]]
"""The log and the weighting of each lane."""


def descend(task: Task, model: nnx.Module, train, validation, *own, starts=None) -> Fit:
    """Train a copy of the model per lane, with the task's settings and early stopping.

    `own` are the method's parameters that may be lanes; `starts` as of
    `twotowers.fitting.gradient.fit`.
    """
    settings = FitSettings(**task.training)
    how: dict[str, Any] = {"seed": task.seed, "checkpoint": task.checkpoint}
    if isinstance(train, StreamLoss):
        return fit_stream(model, train, validation, settings, **how)
    lanes, varied = len(task.lanes), task.varied(*own)
    return gradient_fit(
        model, train, validation, settings, lanes=lanes, starts=starts, varied=varied, **how
    )


def towers_of(task: Task, model: CellModel, heads: Sequence[Callable] = ()) -> TwoTowers:
    """Towers of the task, with a click model."""
    width = width_of(task)
    given = {"positions": task.positions, "seed": task.seed, **task.examination}
    return two_towers(task.tower, width=width, model=model, heads=heads, **given)


def width_of(task: Task) -> int:
    """Features of a document. A tower that reads numbers of pairs has one parameter per pair."""
    return next(iter(widths_of(task).values()))


def widths_of(task: Task) -> dict[str, int]:
    """How many numbers there are of what towers read, by its name."""
    inputs = task.splits["train"].inputs
    if not isinstance(inputs, Several):
        return {"pair": task.pairs} if inputs.ndim == 2 else {"features": inputs.shape[-1]}
    return {
        name: task.pairs if len(each.shape) == 2 else each.shape[-1]
        for name, each in inputs.of.items()
    }


def split_loss(split: Split, lanes: Lanes) -> CountLoss | SessionLoss | StreamLoss:
    """The objective of some lanes: on sessions if the split has them, else on counts."""
    if split.stream is not None:
        return StreamLoss(*split.stream)
    return count_loss(split, lanes) if split.sessions is None else session_loss(split, lanes)


def session_loss(split: Split, lanes: Lanes) -> SessionLoss:
    """The objective of some lanes, on sessions. Their weighting must be "none"."""
    logs = [split.sessions[log] for log, _ in lanes]
    columns = {name: np.stack([getattr(log, name) for log in logs]) for name in PAGE_COLUMNS}
    return jax.device_put(SessionLoss(split.inputs, **columns))


def some_sessions(loss: SessionLoss, sessions: int) -> SessionLoss:
    """The objective on this many of its sessions, evenly spaced (on all, if it has fewer)."""
    sessions = min(sessions, loss.units)
    chosen = np.arange(sessions) * loss.units // sessions
    return replace(loss, **{name: getattr(loss, name)[:, chosen] for name in PAGE_COLUMNS})


def count_loss(split: Split, lanes: Lanes | None = None) -> CountLoss:
    """The objective of some lanes, on counts. If `lanes` is None, it is of all logs, unweighted.

    It is the mean over a session's documents, then over sessions. With weighting "impressions" it
    is the sum over a session's documents, then the mean over sessions. With weighting "queries" it
    is the sum over a query's cells, then the mean over the queries that were asked.
    """
    visits = split.counts.sessions
    # The mean number of documents on a page: a real page may show a part of the known documents.
    documents = np.where(
        visits > 0, split.counts.shown / np.maximum(visits, 1), split.where.sum(-1)
    )
    weight = len(split.where) / (documents * visits.sum(-1, keepdims=True))
    of_lanes = {}
    if lanes is not None:
        asked = (visits > 0).sum(-1, keepdims=True)
        # These two take sums over documents, and divide by queries or sessions only.
        divisors = {"queries": asked, "impressions": visits.sum(-1, keepdims=True)}
        sums = {
            name: np.broadcast_to(len(split.where) / number, weight.shape)
            for name, number in divisors.items()
        }
        weight = np.stack([sums.get(name, weight)[log] for log, name in lanes])
        of_lanes = {
            "log": np.array([log for log, _ in lanes]),
            "weightings": tuple(name for _, name in lanes),
        }
    return jax.device_put(
        CountLoss(split.inputs, split.counts, weight.astype(np.float32), **of_lanes)
    )

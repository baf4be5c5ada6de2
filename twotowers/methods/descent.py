"""What methods share that train towers by gradient descent: towers, objectives, and the descent.

The objectives are those of clicks as counts (`count_loss`), as sessions (`session_loss`), and of
losses of whole pages (`twotowers.losses.pages`), which need a log with `record: sessions`. Held-out
losses are -ln P of each cell's clicks, and of each position of pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from scipy.special import expit, log_expit

from twotowers.fitting.gradient import Fit, FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.fitting.streaming import StreamLoss, fit_stream
from twotowers.logs.described import Several
from twotowers.losses.likelihood import CountLoss, SessionLoss
from twotowers.losses.listwise import ABSENT
from twotowers.losses.pages import PageLoss
from twotowers.losses.pointwise import clipped_weights
from twotowers.methods.harvesting import NONE, propensities_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.models.protocol import CellModel
from twotowers.towers.page_towers import PageTowers
from twotowers.towers.parts import value_of
from twotowers.towers.two_towers import TwoTowers, scores, two_towers

Weighting = Literal["none", "ips", "impressions", "queries"]
"""How impressions are weighted:

- "none": each session has weight 1, spread equally over its documents;
- "ips": "none", with each impression divided by its display propensity;
- "impressions": each impression has weight 1, so long lists count more;
- "queries": each cell that was shown has weight 1, however often it was shown, with its click rate
  as the click."""

CHUNK, PAGES = 256, 20_000
"""Queries, and pages, evaluated at a time, which bounds memory."""
PAGE_COLUMNS = "query", "documents", "clicks", "where"
"""What the objective reads of `Sessions`."""

Lanes = list[tuple[int, str]]
"""The log and the weighting of each lane."""


def descend(task: Task, model: nnx.Module, train, validation, *own, starts=None) -> Fit:
    """Train a copy of the model per lane, with the task's settings and early stopping.

    Args:
        train, validation: the objectives of the two splits, such as `split_loss` gives.
        own: names of the method's parameters that may differ between lanes.
        starts: [lanes, parameters of the model] where each lane starts; the model itself if None.
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


def train(
    task: Task, model, loss: Callable, *own: Any, given: Callable[[str], np.ndarray] | None = None
) -> Fit:
    """Train a copy of the model per lane, with early stopping on the same loss.

    `own` are the method's parameters that may be lanes; `given`: split -> [lanes, positions] or
    [lanes, pages, positions] numbers that the loss, of `twotowers.losses.pages`, reads.
    """
    parts = [
        page_loss(task, split, loss, given and given(split)) for split in ("train", "validation")
    ]
    return descend(task, model, *parts, *own)


def page_loss(task: Task, name: str, loss: Callable, given: np.ndarray | None = None) -> PageLoss:
    """The objective on a split's sessions. Arguments as of `train`."""
    split = task.splits[name]
    logs = range(len(split.sessions))
    clicks, where = (
        np.stack([getattr(log, name) for log in split.sessions]) for name in ("clicks", "where")
    )
    return jax.device_put(
        PageLoss(
            inputs=split.table,
            document=np.stack([split.rows(log) for log in logs]),
            clicks=clicks,
            where=where,
            log=np.array([log for log, _ in task.lanes]),
            loss=loss,
            given=None if given is None else np.asarray(given, np.float32),
        )
    )


def relevance_of(task: Task) -> ListTower:
    """The relevance tower of a task, alone."""
    return ListTower(towers_of(task, DocumentRate()).relevance)


def weights_of(task: Task, propensities: str) -> np.ndarray | None:
    """[lanes, positions] weights of clicks, at most 10; None for the propensities "none"."""
    if propensities == NONE:
        return None
    theta = [propensities_of(task, log, propensities) for log, _ in task.lanes]
    return np.stack([clipped_weights(each) for each in theta])


def count_losses(task: Task) -> list[CountLoss]:
    """The objectives of training and validation on unweighted counts."""
    lanes = [(log, "none") for log, _ in task.lanes]
    return [count_loss(task.splits[name], lanes) for name in ("train", "validation")]


def fitted_of(result: Fit, lane: int, **further) -> Fitted:
    """What training found for a lane: the scores of `model.relevance`, and further fields."""
    model = result.model(lane)
    return Fitted(
        scores=lambda inputs: np.asarray(scores(model.relevance, inputs)),
        values={"epochs": result.epochs[lane]},
        history=result.history[:, lane],
        **further,
    )


def position_based_losses(
    relevance: np.ndarray, examined: np.ndarray, clicks: np.ndarray
) -> np.ndarray:
    """-ln P(click or none, as observed) in nats with P(click) = e s(f), finite for all finite f.

    Logits f, propensities e in (0, 1] and clicks are [...].

    Example:
        >>> losses = position_based_losses(np.array([0.0, 50.0]), np.array([0.5, 1.0]), False)
        >>> losses.round(3).tolist()
        [0.288, 50.0]
    """
    relevance, examined = np.asarray(relevance, float), np.asarray(examined, float)
    # 1 - e s(f) as a sum. Where e = 1, and s(f) rounds to 1, the difference would be 0.
    missed = np.log((1 - examined) + examined * expit(-relevance))
    return -np.where(clicks, np.log(examined) + log_expit(relevance), missed)


class ListTower(nnx.Module):
    """A relevance tower f with the softmax loss: a click on document d has the loss -ln r_d.

    r = softmax(f) over the documents that the list shows. Clicks may have weights. This is the
    ranking loss of `twotowers.methods.dla` (Ai et al. 2018) with given weights.

    Attributes:
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
    """

    def __init__(self, relevance: nnx.Module):
        self.relevance = relevance

    def cell_losses(
        self, inputs: jax.Array, shown: jax.Array, clicked: jax.Array, key: jax.Array | None = None
    ) -> jax.Array:
        """Loss of every cell: [..., documents, positions]. Arguments as in `TwoTowers`."""
        logits = jnp.where(shown.sum(-1) > 0, self.relevance(inputs, key), ABSENT)
        losses = -jax.nn.log_softmax(logits)[..., None]
        # Counts may be unsigned, and of documents that no list shows.
        return jnp.where(clicked > 0, clicked * losses, 0)


def cell_losses(model, split: Split, log: int) -> np.ndarray:
    """Negative log-likelihood of each cell of one log, in the shape of its counts."""
    counts = split.counts.of_log(log)
    columns = [counts.impressions, counts.clicks]
    if counts.listed:
        columns = [counts.document, counts.position, *columns]
    losses = _row_losses if counts.listed else _dense_losses
    parts = [
        losses(model, *(column[start : start + CHUNK] for column in (split.inputs, *columns)))
        for start in range(0, len(split.where), CHUNK)
    ]
    return np.concatenate(parts)


def dropped_losses(model: TwoTowers, split: Split, log: int) -> np.ndarray:
    """Negative log-likelihood of each cell, in expectation over the dropout of examination.

    With rate t a logit theta is 0 with probability t, else theta / (1 - t). So the expectation has
    two terms, and is exact.
    """
    rate = float(value_of(model.dropout))
    kept, none = (cell_losses(model.scaled(factor), split, log) for factor in (1 / (1 - rate), 0.0))
    return (1 - rate) * kept + rate * none


def page_losses(
    model: TwoTowers | PageTowers, split: Split, log: int
) -> tuple[np.ndarray, np.ndarray]:
    """-ln P(click or none, as observed) at each position of a log's pages, in two versions.

    P of the first version knows no other click of the page. P of the second is conditional on the
    clicks above. Both are the same for a model of cells, and [sessions, K].
    """
    pages, parts = split.sessions[log], []
    for start in range(0, len(pages.query), PAGES):
        rows = slice(start, start + PAGES)
        documents = pages.documents[rows].astype(np.int32)
        where, clicks = pages.where[rows], pages.clicks[rows] & pages.where[rows]
        columns = split.inputs[pages.query[rows]], documents
        if isinstance(model, PageTowers):
            parts.append(_both_losses(model, *columns, where, clicks))
        else:
            position = np.broadcast_to(np.arange(documents.shape[1]), documents.shape)
            losses = _row_losses(model, *columns, position, where, clicks)
            parts.append((losses, losses))
    return tuple(np.concatenate(part).astype(float) for part in zip(*parts, strict=True))


@nnx.jit
def _both_losses(model, *columns):
    return model.page_losses(*columns)


@nnx.jit
def _dense_losses(model, *columns):
    return model.cell_losses(*columns)


@nnx.jit
def _row_losses(model, *columns):
    return model.row_losses(*columns)

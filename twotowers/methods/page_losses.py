"""What methods share that train towers by a loss of whole pages, or of the counts of whole queries.

The losses of pages are in `twotowers.losses.pages`, and need a log with `record: sessions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from scipy.special import expit, log_expit

from twotowers.fitting.gradient import Fit
from twotowers.losses.likelihood import CountLoss
from twotowers.losses.listwise import ABSENT
from twotowers.losses.pages import PageLoss
from twotowers.losses.pointwise import clipped_weights
from twotowers.methods.descent import count_loss, descend, towers_of
from twotowers.methods.propensities import NONE, propensities_of
from twotowers.methods.task import Fitted, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.towers.two_towers import scores


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

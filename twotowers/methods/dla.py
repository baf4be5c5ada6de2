"""The dual learning algorithm with towers (Ai et al. 2018; Hager 2026, Eq. 3.6).

Relevance and examination weight each other's clicks. On a log of sessions, the losses are those of
result pages (`twotowers.losses.listwise.dual_losses`); on a log of cells, those of the counts of
whole queries (`DualTowers`). Chen et al. 2024 use the name DLA for alternating least
squares on click rates, which is method `alternation`.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from twotowers.losses.listwise import ABSENT, Normalised
from twotowers.losses.pages import Dual
from twotowers.methods.descent import count_losses, descend, fitted_of, towers_of, train
from twotowers.methods.task import Fitted, Task
from twotowers.models.additive import Additive
from twotowers.towers.two_towers import TwoTowers

TRAINS = True
NEEDS = ("examination", "dense")
HIGHEST = 10.0
"""The largest weight of a click on a log of cells."""


def fit(
    task: Task, *, normalised: Normalised = "not", watched: Literal["places", "losses"] = "places"
) -> list[Fitted]:
    """Fit both towers of every lane by gradient descent. Weights of clicks are at most 10.

    Args:
        task: its model's click probability is not used.
        normalised: of pages; see `twotowers.losses.listwise.softmax_loss`. The code of Hager
            (2026) normalises "after".
        watched: of pages, the loss that early stopping watches: see `twotowers.losses.pages.Dual`.
            The code of Hager (2026) watches "losses".
    """
    lanes = range(len(task.lanes))
    if task.splits["train"].sessions is not None:
        loss = Dual(normalised=normalised, watched=watched)
        result = train(task, towers_of(task, Additive()), loss)
        towers = [result.model(lane) for lane in lanes]
    else:
        model = DualTowers(towers_of(task, task.model))
        result = descend(task, model, *count_losses(task))
        towers = [result.model(lane).towers for lane in lanes]
    return [
        fitted_of(result, lane, bias=np.asarray(own.examination, float))
        for lane, own in zip(lanes, towers, strict=True)
    ]


class DualTowers(nnx.Module):
    """A tower f of documents and a tower g of positions, each weighting the other's clicks.

    On a list, relevance is r = softmax(f) and examination is o = softmax(g). The loss of a click
    on document d at position k is (Ai et al. 2018)

        -(o_1 / o_k) ln r_d  -  (r_1 / r_d) ln o_k

    where r_1 is the relevance of the document at position 1. Both weights are at most `HIGHEST`.
    The gradient treats them as constants, so f learns from clicks weighted by g, and g learns
    from clicks weighted by f. Both ratios refer to position 1, which fixes the scale.

    Losses are computed from counts. They equal the losses of the sessions if all sessions of a
    query show one ranking. If rankings differ, a query's documents count as one list, and r_1 is
    the mean over the documents at position 1.

    The weights change during training, so the losses of two epochs cannot be compared. Early
    stopping passes no `key` and gets another loss: the negative log-likelihood of where the clicks
    of a list fall, with P(d, k) proportional to r_d o_k.

    Attributes:
        towers: give f and g. Their click model is not used.
    """

    def __init__(self, towers: TwoTowers):
        self.towers = towers

    @property
    def relevance(self) -> nnx.Module:
        """The tower f."""
        return self.towers.relevance

    def cell_losses(
        self, inputs: jax.Array, shown: jax.Array, clicked: jax.Array, key: jax.Array | None = None
    ) -> jax.Array:
        """Loss of every cell: [..., documents, positions]. Arguments as in `TwoTowers`."""
        relevance = jnp.where(shown.sum(-1) > 0, self.relevance(inputs, key), ABSENT)
        examination = jnp.where(shown.sum(-2) > 0, self.towers.examination_for(key), ABSENT)
        shown, clicked = shown.astype(jnp.float32), clicked.astype(jnp.float32)
        if key is None:
            both = relevance[..., None] + examination[..., None, :]
            both = jnp.where(shown > 0, both, ABSENT)
            # Counts add up over sessions. Every session shows one document at position 1, so the
            # impressions there are the number of sessions, and dividing by it gives one list.
            sessions = jnp.maximum(shown[..., 0].sum(-1), 1)[..., None, None]
            total = jax.nn.logsumexp(both, axis=(-2, -1), b=shown / sessions, keepdims=True)
            return jnp.where(clicked > 0, clicked * (total - both), 0)
        log_r, log_o = jax.nn.log_softmax(relevance), jax.nn.log_softmax(examination)
        first = shown[..., 0] / jnp.maximum(shown[..., 0].sum(-1, keepdims=True), 1)
        log_first = jax.nn.logsumexp(log_r, axis=-1, b=first, keepdims=True)
        by_position = self._weight(log_o[..., :1] - log_o)[..., None, :]
        by_document = self._weight(log_first - log_r)[..., None]
        losses = by_position * log_r[..., None] + by_document * log_o[..., None, :]
        return -clicked * losses

    def _weight(self, log_ratio: jax.Array) -> jax.Array:
        ratio = jnp.exp(jnp.minimum(log_ratio, jnp.log(HIGHEST)))
        return jax.lax.stop_gradient(ratio)

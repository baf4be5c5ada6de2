"""The dual learning algorithm's two losses, of the same two towers (Ai et al. 2018)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.models.towers import TwoTowers

ABSENT = -1e9
"""The logit of what is not on a list: its share of a softmax is 0."""


class DualTowers(nnx.Module):
    """Towers f of documents and g of positions that teach each other (Ai et al. 2018).

    On a list, relevance is r = softmax(f) and examination o = softmax(g). A click on document d at
    position k costs

        -(o_1 / o_k) ln r_d  -  (r_1 / r_d) ln o_k

    where r_1 is the relevance of the document at position 1. Both weights are at most `highest`,
    and the gradient takes them for constants. So f learns from clicks that g weighs, and g learns
    from clicks that f weighs. Both ratios refer to position 1, so no scale is open.

    Losses are computed from counts. They equal the losses of the sessions if all sessions of a
    query show one ranking. If rankings differ, a query's documents count as one list, and r_1 is
    the mean over the documents at position 1.

    The weights change while training, so the losses of two epochs cannot be compared. Early
    stopping, which gives no `key`, sees another loss: the likelihood of where the clicks of a list
    fall, P(d, k) proportional to r_d o_k.

    Attributes:
        towers: their own click model is not asked.
        highest: of both weights.
    """

    def __init__(self, towers: TwoTowers, *, highest: float):
        self.towers = towers
        self.highest = highest

    def cell_losses(
        self,
        inputs: jax.Array,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array | None = None,
    ) -> jax.Array:
        """Losses of every cell: [..., documents, positions]; arguments as of `TwoTowers`."""
        relevance = jnp.where(shown.sum(-1) > 0, self.towers.relevance(inputs, key), ABSENT)
        examination = jnp.where(shown.sum(-2) > 0, self.towers.examination_for(key), ABSENT)
        shown, clicked = shown.astype(jnp.float32), clicked.astype(jnp.float32)
        if key is None:
            both = relevance[..., None] + examination[..., None, :]
            both = jnp.where(shown > 0, both, ABSENT)
            # Of one list: sessions that show it add up, and are as many at the first position.
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
        ratio = jnp.exp(jnp.minimum(log_ratio, jnp.log(self.highest)))
        return jax.lax.stop_gradient(ratio)

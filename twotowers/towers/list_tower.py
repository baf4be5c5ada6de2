"""The softmax loss of a list: on which of its documents a click falls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.losses.listwise import ABSENT


class ListTower(nnx.Module):
    """A relevance tower f with the softmax loss: a click on document d has the loss -ln r_d.

    r = softmax(f) over the documents that the list shows. Clicks may have weights. This is the
    ranking loss of `twotowers.towers.dual` (Ai et al. 2018) with given weights.

    Attributes:
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
    """

    def __init__(self, relevance: nnx.Module):
        self.relevance = relevance

    def cell_losses(
        self, inputs: jax.Array, shown: jax.Array, clicked: jax.Array, key: jax.Array | None = None
    ) -> jax.Array:
        """Loss of every cell: [..., documents, positions]. Arguments as in `TwoTowers`.

        Example:
            >>> tower = ListTower(lambda inputs, key: inputs[..., 0])
            >>> shown, clicked = jnp.ones((1, 2, 1)), jnp.array([[[3.0], [0.0]]])
            >>> tower.cell_losses(jnp.zeros((1, 2, 1)), shown, clicked).ravel().round(3).tolist()
            [2.0789999961853027, 0.0]
        """
        logits = jnp.where(shown.sum(-1) > 0, self.relevance(inputs, key), ABSENT)
        losses = -jax.nn.log_softmax(logits)[..., None]
        # Counts may be unsigned, and of documents that no list shows.
        return jnp.where(clicked > 0, clicked * losses, 0)

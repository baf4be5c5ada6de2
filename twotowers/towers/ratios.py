"""A relevance tower and the ratios of pairwise debiasing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.losses.cells import softplus
from twotowers.towers.parts import embedding


class RatioTowers(nnx.Module):
    """A relevance tower, and two ratios t+ and t- per position: softplus of a parameter each.

    The parameters start at N(0, 1), as published. The tables have a row more than there are
    positions, for places without a document: a page of the published code is padded with position
    0, whose ratios are trained too.

    Attributes:
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
        positive, negative: embeddings [positions + 1, 1].
    """

    def __init__(self, relevance: nnx.Module, positions: int, *, rngs: nnx.Rngs):
        self.relevance = relevance
        self.positive = embedding(positions + 1, rngs=rngs)
        self.negative = embedding(positions + 1, rngs=rngs)

    def ratios(self) -> tuple[jax.Array, jax.Array]:
        """[positions + 1] t+ and t-. The last is of places without a document."""
        return tuple(
            jnp.ravel(softplus(table.embedding[...])) for table in (self.positive, self.negative)
        )

"""The loss of logging policies' rankers on relevance labels."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass


@register_dataclass
@dataclass(frozen=True)
class LabelLoss:
    """Mean squared error to relevance labels over a query's documents; a unit is a query.

    Attributes:
        features: [queries, documents, width].
        labels: [queries, documents].
        where: [queries, documents] bool, False on padding.
    """

    features: jax.Array
    labels: jax.Array
    where: jax.Array

    @property
    def units(self) -> int:
        return self.features.shape[0]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: all True, because every query has labels."""
        return jnp.ones(self.units, bool)

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        where = self.where[index]
        error = jnp.where(where, model(self.features[index], key) - self.labels[index], 0.0)
        return jnp.square(error).sum(-1) / where.sum(-1)

"""What a fit minimises, as data: arrays that stay on the device, and a loss per unit.

An objective is a pytree with the number of its `units` (queries, or sessions) and
`losses(model, index, lane, key)`, the loss of the units with those indices in the log of
that lane, whose mean over all units is the objective. Under `jax.vmap` over lanes, what
lanes share (the features) is gathered and multiplied once.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

LIMIT = 85.0
"""Logits whose exponential and its inverse are both float32, so that no 0 meets an infinity."""


@jax.custom_jvp
def softplus(logits: jax.Array) -> jax.Array:
    """ln(1 + e^z), stable for large |z|; its derivative is computed as one sigmoid.

    The same values as JAX's own without its care for infinities less infinities, in two thirds of
    the time; JAX's derivative goes through the logarithm and costs four times as much.
    """
    return jnp.maximum(logits, 0) + jnp.log1p(jnp.exp(-jnp.abs(logits)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


@jax.custom_jvp
def cell_losses(
    relevance: jax.Array, bias: jax.Array, shown: jax.Array, clicked: jax.Array
) -> jax.Array:
    """Negative log-likelihood of the clicks of each cell, whose logit is relevance + bias (Eq. 3).

    Its derivative takes an exponential per document and one per position instead of one per
    cell, which would be most of its cost. Relevance and bias count as at most +-LIMIT there.

    Args:
        relevance: [..., documents] logits.
        bias: [positions] logits.
        shown: [..., documents, positions] impressions.
        clicked: the same shape, clicks.
    """
    logits = relevance[..., None] + bias
    # -[c log s(z) + (n - c) log s(-z)] = n softplus(z) - c z, without the logarithm of
    # a sigmoid, which underflows for large |z|.
    return shown.astype(jnp.float32) * softplus(logits) - clicked.astype(jnp.float32) * logits


@cell_losses.defjvp
def _cell_losses_jvp(primals, tangents):
    relevance, bias, shown, clicked = primals
    odds = _inverse_exp(relevance)[..., None] * _inverse_exp(bias)
    expected = shown.astype(jnp.float32) / (1 + odds)
    moved = tangents[0][..., None] + tangents[1]
    return cell_losses(*primals), (expected - clicked.astype(jnp.float32)) * moved


def _inverse_exp(logits: jax.Array) -> jax.Array:
    return jnp.exp(-jnp.clip(logits, -LIMIT, LIMIT))


@register_dataclass
@dataclass(frozen=True)
class CountLoss:
    """Negative log-likelihood of click counts; a unit is a query (Eq. 3, from counts).

    As in the published code, a session's loss is the mean over its documents, and the
    objective the mean over sessions. Cells without impressions, padding among them,
    contribute nothing. Weighted counts (`twotowers.logs.propensities`) give Eq. 22.

    Attributes:
        inputs: [queries, documents, ...] what the relevance tower reads.
        impressions: [lanes, queries, documents, positions].
        clicks: the same shape.
        weight: [queries] 1 / (documents of the query x mean sessions per query).
    """

    inputs: jax.Array
    impressions: jax.Array
    clicks: jax.Array
    weight: jax.Array

    @property
    def units(self) -> int:
        return self.inputs.shape[0]

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        relevance = model.relevance(self.inputs[index], key)
        shown, clicked = self.impressions[lane, index], self.clicks[lane, index]
        cells = cell_losses(relevance, model.position_bias, shown, clicked)
        return self.weight[index] * cells.sum((-2, -1))


@register_dataclass
@dataclass(frozen=True)
class SessionLoss:
    """The same objective from a log of sessions; a unit is a session.

    Attributes:
        inputs: [queries, documents, ...] what the relevance tower reads.
        query: [lanes, sessions] index of the query.
        documents: [lanes, sessions, positions] list index of the document shown there.
        clicks: [lanes, sessions, positions] bool.
        where: [lanes, sessions, positions] bool, False behind the end of a list.
    """

    inputs: jax.Array
    query: jax.Array
    documents: jax.Array
    clicks: jax.Array
    where: jax.Array

    @property
    def units(self) -> int:
        return self.query.shape[1]

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the sessions with the given indices."""
        query, documents = self.query[lane, index], self.documents[lane, index]
        where = self.where[lane, index]
        relevance = model.relevance(self.inputs[query], key)
        logits = jnp.take_along_axis(relevance, documents, axis=-1) + model.position_bias
        clicks = self.clicks[lane, index]
        cells = jnp.where(where, softplus(logits) - clicks * logits, 0.0)
        return cells.sum(-1) / where.sum(-1)


@register_dataclass
@dataclass(frozen=True)
class LabelLoss:
    """Mean squared error to relevance labels; a unit is a query (the logging policy's ranker).

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

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        where = self.where[index]
        error = jnp.where(where, model(self.features[index], key) - self.labels[index], 0.0)
        return jnp.square(error).sum(-1) / where.sum(-1)

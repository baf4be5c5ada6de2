"""What a fit minimises, as data: arrays that stay on the device, and a loss per unit.

An objective is a pytree with the number of its `units` (queries, or sessions) and
`losses(model, index, lane, key)`, the loss of the units with those indices, whose mean
over all units is the objective. Under `jax.vmap` over lanes, what lanes share (the
features) is gathered and multiplied once.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from twotowers.propensities import inverse_propensity


@register_dataclass
@dataclass(frozen=True)
class Lane:
    """The conditions under which one lane is trained.

    Attributes:
        log: which of the objective's click logs it reads.
        weighted: whether impressions are weighted by inverse propensity (Eq. 22).
    """

    log: jax.Array
    weighted: jax.Array


@register_dataclass
@dataclass(frozen=True)
class CountLoss:
    """Negative log-likelihood of click counts; a unit is a query (Eq. 3, from counts).

    As in the published code, a session's loss is the mean over its documents, and the
    objective the mean over sessions. Cells without impressions, padding among them,
    contribute nothing.

    Attributes:
        inputs: [queries, documents, ...] what the relevance tower reads.
        impressions: [logs, queries, documents, positions].
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

    def losses(self, model, index: jax.Array, lane: Lane, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        shown = self.impressions[lane.log, index].astype(jnp.float32)
        clicked = self.clicks[lane.log, index].astype(jnp.float32)
        shown, clicked = jax.tree.map(
            lambda weighted, plain: jnp.where(lane.weighted, weighted, plain),
            inverse_propensity(shown, clicked),
            (shown, clicked),
        )
        logits = model(self.inputs[index], key)
        # -[c log s(z) + (n - c) log s(-z)] = n softplus(z) - c z, without the logarithm of
        # a sigmoid, which underflows for large |z|.
        cells = shown * jax.nn.softplus(logits) - clicked * logits
        return self.weight[index] * cells.sum((-2, -1))


@register_dataclass
@dataclass(frozen=True)
class SessionLoss:
    """The same objective from a log of sessions; a unit is a session.

    Attributes:
        inputs: [queries, documents, ...] what the relevance tower reads.
        query: [logs, sessions] index of the query.
        documents: [logs, sessions, positions] list index of the document shown there.
        clicks: [logs, sessions, positions] bool.
        where: [logs, sessions, positions] bool, False behind the end of a list.
    """

    inputs: jax.Array
    query: jax.Array
    documents: jax.Array
    clicks: jax.Array
    where: jax.Array

    @property
    def units(self) -> int:
        return self.query.shape[1]

    def losses(self, model, index: jax.Array, lane: Lane, key: jax.Array | None = None):
        """[units] losses of the sessions with the given indices."""
        query, documents = self.query[lane.log, index], self.documents[lane.log, index]
        where = self.where[lane.log, index]
        relevance = model.relevance(self.inputs[query], key)
        logits = jnp.take_along_axis(relevance, documents, axis=-1) + model.position_bias
        clicks = self.clicks[lane.log, index]
        cells = jnp.where(where, jax.nn.softplus(logits) - clicks * logits, 0.0)
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

    def losses(self, model, index: jax.Array, lane: Lane, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        where = self.where[index]
        error = jnp.where(where, model(self.features[index], key) - self.labels[index], 0.0)
        return jnp.square(error).sum(-1) / where.sum(-1)

"""What a fit minimises, as data: arrays that stay on the device, and a loss per unit.

An objective is a pytree with the number of its `units` (queries, or sessions) and
`losses(model, index, lane, key)`, the loss of the units with those indices in the log of
that lane, whose mean over all units is the objective. `has(lane)` says which units that log has
something of; the loss of the others is 0. Under `jax.vmap` over lanes, what
lanes share (the features) is gathered and multiplied once. What a click is, the model says: an
objective asks it for losses of cells, and reaches into none of its parts. An objective
also carries the labels of documents that heads read (`twotowers.heads.head.LABELS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass


def told_of(labels: Mapping[str, jax.Array], lane: jax.Array, query: jax.Array) -> dict:
    """The keyword `labels` for some queries in one lane; no keyword if no head reads labels."""
    if not labels:
        return {}
    return {"labels": {name: each[lane, query] for name, each in labels.items()}}


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
        weight: [lanes, queries] 1 / (documents of the query x mean sessions per query).
        labels: [lanes, queries, documents] by name.
    """

    inputs: jax.Array
    impressions: jax.Array
    clicks: jax.Array
    weight: jax.Array
    labels: Mapping[str, jax.Array] = field(default_factory=dict)

    @property
    def units(self) -> int:
        return self.inputs.shape[0]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: the query was asked."""
        return (self.impressions[lane] > 0).any((-2, -1))

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        shown, clicked = self.impressions[lane, index], self.clicks[lane, index]
        told = told_of(self.labels, lane, index)
        cells = model.cell_losses(self.inputs[index], shown, clicked, key, **told)
        return self.weight[lane, index] * cells.sum((-2, -1))


@register_dataclass
@dataclass(frozen=True)
class RowLoss:
    """The objective of `CountLoss` from those cells only that were shown; a unit is a query.

    For long lists, of whose documents x positions few are ever shown together.

    Attributes:
        inputs: [queries, documents, ...] what the relevance tower reads.
        document: [lanes, queries, rows] list index of each cell's document.
        position: [lanes, queries, rows] 0-based position of each cell.
        impressions: [lanes, queries, rows]; 0 behind the last cell of a query.
        clicks: the same shape.
        weight: [lanes, queries] 1 / (documents of the query x mean sessions per query).
        labels: [lanes, queries, documents] by name.
    """

    inputs: jax.Array
    document: jax.Array
    position: jax.Array
    impressions: jax.Array
    clicks: jax.Array
    weight: jax.Array
    labels: Mapping[str, jax.Array] = field(default_factory=dict)

    @property
    def units(self) -> int:
        return self.inputs.shape[0]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: the query was asked."""
        return (self.impressions[lane] > 0).any(-1)

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        columns = self.document, self.position, self.impressions, self.clicks
        cells = model.row_losses(
            self.inputs[index],
            *(column[lane, index] for column in columns),
            key,
            **told_of(self.labels, lane, index),
        )
        return self.weight[lane, index] * cells.sum(-1)


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
        labels: [lanes, queries, documents] by name.
    """

    inputs: jax.Array
    query: jax.Array
    documents: jax.Array
    clicks: jax.Array
    where: jax.Array
    labels: Mapping[str, jax.Array] = field(default_factory=dict)

    @property
    def units(self) -> int:
        return self.query.shape[1]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: every session is one."""
        return jnp.ones(self.units, bool)

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the sessions with the given indices."""
        query, documents = self.query[lane, index], self.documents[lane, index]
        where = self.where[lane, index]
        position = jnp.broadcast_to(jnp.arange(documents.shape[-1]), documents.shape)
        clicks = self.clicks[lane, index] & where
        told = told_of(self.labels, lane, query)
        cells = model.row_losses(
            self.inputs[query], documents, position, where, clicks, key, **told
        )
        return cells.sum(-1) / where.sum(-1)

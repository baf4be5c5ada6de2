"""The objectives of fits: data on the device, and a loss per unit.

An objective is a pytree. `units` is its number of units (queries or sessions).
`losses(model, index, lane, key)` gives the losses of the units with these indices in the log of a
lane, and their mean over all units is the objective. `has(lane)` gives the units with data in that
log. The loss of the others is 0. Under `jax.vmap` over lanes, features are gathered and multiplied
once, because all lanes share them. An objective asks the model for losses of cells and never reads
its parts. It also holds the labels of documents that heads read (`twotowers.towers.head.LABELS`).

A weighting says how much each impression counts in a fit: it turns the counts of cells into
weighted counts, for the queries of a step. So lanes with different weightings share the counts of
their log, which stay small integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from twotowers.logs.counts import Counts
from twotowers.logs.described import Gathered, Several

register_dataclass(Counts)
register_dataclass(Gathered)
register_dataclass(Several)


def labels_of(labels: Mapping[str, jax.Array], lane: jax.Array, query: jax.Array) -> dict:
    """The keyword argument `labels` for some queries in one lane, left out if there are none."""
    if not labels:
        return {}
    return {"labels": {name: each[lane, query] for name, each in labels.items()}}


def log_of(objective: CountLoss, lane: jax.Array) -> jax.Array:
    """The number of a lane's log."""
    return lane if objective.log is None else objective.log[lane]


@register_dataclass
@dataclass(frozen=True)
class CountLoss:
    """Negative log-likelihood of click counts; a unit is a query (Hager et al. 2025, Eq. 3).

    As in the published code, a session's loss is the mean over its documents, and the objective is
    the mean over sessions. Cells without impressions, such as padding, have loss 0. With the
    weighting "ips" (`inverse_propensity`) it is Eq. 22.

    Attributes:
        inputs: [queries, documents, ...] input of the relevance tower.
        counts: [logs, queries, ...], dense or listed.
        weight: [lanes, queries] weight of each query's sum of losses:
            1 / (documents of the query x mean sessions per query) gives the mean above.
        log: [lanes] number of each lane's log. If None, each lane has the log of its own number.
        weightings: the name of each lane's weighting. If empty, all are "none".
        labels: name -> [lanes, queries, documents] labels that heads read.
    """

    inputs: jax.Array
    counts: Counts
    weight: jax.Array
    log: jax.Array | None = None
    weightings: tuple[str, ...] = field(default=(), metadata={"static": True})
    labels: Mapping[str, jax.Array] = field(default_factory=dict)

    @property
    def units(self) -> int:
        return self.inputs.shape[0]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: the query was asked."""
        return (self.counts.shown > 0)[log_of(self, lane)]

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        log = log_of(self, lane)
        counts = self.counts.at((log, index))
        columns = weighted(self.weightings, lane, counts)
        if counts.listed:
            columns = counts.document, counts.position, *columns
        cell_losses = model.row_losses if counts.listed else model.cell_losses
        labels = labels_of(self.labels, lane, index)
        losses = cell_losses(self.inputs[index], *columns, key, **labels)
        return self.weight[lane, index] * counts.total(losses)


@register_dataclass
@dataclass(frozen=True)
class SessionLoss:
    """Negative log-likelihood of the clicks of sessions; a unit is a session.

    A session's loss is the mean over its documents, and the objective is the mean over sessions, as
    in `CountLoss` with the weighting "none".

    Attributes:
        inputs: [queries, documents, ...] input of the relevance tower.
        query: [lanes, sessions] row of each session's query in `inputs`.
        documents: [lanes, sessions, positions] number of the document within its query.
        clicks: [lanes, sessions, positions] bool.
        where: [lanes, sessions, positions] bool, False past the end of a page.
        labels: name -> [lanes, queries, documents] labels that heads read.
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
        """[units] bool: all True, because every session has data."""
        return jnp.ones(self.units, bool)

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the sessions with the given indices."""
        query, documents = self.query[lane, index], self.documents[lane, index]
        where = self.where[lane, index]
        position = jnp.broadcast_to(jnp.arange(documents.shape[-1]), documents.shape)
        clicks = self.clicks[lane, index] & where
        labels = labels_of(self.labels, lane, query)
        cells = model.row_losses(
            self.inputs[query], documents, position, where, clicks, key, **labels
        )
        return cells.sum(-1) / where.sum(-1)


def as_counted(shown: jax.Array, clicked: jax.Array, sessions: jax.Array):
    """Every impression has weight 1. Arguments and result are those of `inverse_propensity`."""
    return shown, clicked


def inverse_propensity(shown: jax.Array, clicked: jax.Array, sessions: jax.Array):
    """Every impression is weighted by the inverse propensity of its cell.

    A cell is a query, a document and a position. Its propensity is the share of the query's
    sessions that show the document there. It is counted in the log: impressions over sessions. So
    (impressions, clicks) of a shown cell become (sessions, sessions x clicks / impressions), not
    clipped; others stay 0. A deterministic policy shows each document at one position only. Then
    every propensity is 1, and nothing changes. Source: Hager et al. 2025, Section 6, Eq. 22.

    Example:
        >>> shown, clicked = jnp.array([3, 1, 0]), jnp.array([2, 1, 0])
        >>> [each.tolist() for each in inverse_propensity(shown, clicked, jnp.array(4))]
        [[4, 4, 0], [2.6666667461395264, 4.0, 0.0]]
    """
    impressions = jnp.where(shown > 0, sessions, 0)
    return impressions, clicked * (impressions / jnp.where(shown > 0, shown, 1))


def click_rates(shown: jax.Array, clicked: jax.Array, sessions: jax.Array):
    """Every cell that was shown counts as one impression. Its clicks are its click rate.

    Arguments and result are those of `inverse_propensity`.
    """
    return (shown > 0).astype(jnp.float32), clicked / jnp.where(shown > 0, shown, 1)


WEIGHTINGS = {
    "none": as_counted,
    "ips": inverse_propensity,
    "impressions": as_counted,
    "queries": click_rates,
}
"""Name -> weighting. What the names mean to a loss: `twotowers.methods.descent.Weighting`."""


def weighted(
    weightings: tuple[str, ...], lane: jax.Array, counts: Counts
) -> tuple[jax.Array, jax.Array]:
    """Impressions and clicks of cells, some queries in a lane's log, under the lane's weighting.

    Without weightings, all are "none". float32 if lanes differ in their weighting, else as the
    weighting gives them.
    """
    used = sorted(set(weightings)) or ["none"]
    sessions = counts.spread(counts.sessions)
    results = [WEIGHTINGS[name](counts.impressions, counts.clicks, sessions) for name in used]
    if len(results) == 1:
        return results[0]
    which = jnp.asarray([used.index(name) for name in weightings])[lane]
    return tuple(
        jax.lax.select_n(which, *(jnp.asarray(each, jnp.float32) for each in column))
        for column in zip(*results, strict=True)
    )

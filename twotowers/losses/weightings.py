"""Weightings: how much each impression counts in a fit.

A weighting turns the counts of cells into weighted counts. It is computed for the queries of a
step. So lanes with different weightings share the counts of their log, which stay small integers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from twotowers.logs.counts import Counts


def as_counted(shown: jax.Array, clicked: jax.Array, sessions: jax.Array):
    """Every impression has weight 1. Arguments and result are those of `inverse_propensity`."""
    return shown, clicked


def inverse_propensity(shown: jax.Array, clicked: jax.Array, sessions: jax.Array):
    """Every impression is weighted by the inverse propensity of its cell.

    A cell is a query, a document and a position. Its propensity is the share of the query's
    sessions that show the document there. It is counted in the log: impressions over sessions. So
    (impressions, clicks) of a shown cell become (sessions, sessions x clicks / impressions). A
    deterministic policy shows each document at one position only. Then every propensity is 1, and
    nothing changes. Source: Hager et al. 2025, Section 6, Eq. 22.

    Args:
        shown, clicked: [...] impressions and clicks of cells, integers or fractions, 0 or more.
        sessions: sessions of each cell's query; it broadcasts to the cells.

    Returns:
        [...] weighted impressions and clicks, not clipped. Cells that were never shown stay 0.

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
    """Impressions and clicks of cells under the weighting of a lane.

    Args:
        weightings: the name of each lane's weighting. If empty, all are "none".
        lane: number of the lane.
        counts: of some queries in the lane's log, as JAX arrays.

    Returns:
        [...] each; float32 if lanes differ in their weighting, else as the weighting gives them.
    """
    used = sorted(set(weightings)) or ["none"]
    sessions = counts.spread(counts.sessions)
    found = [WEIGHTINGS[name](counts.impressions, counts.clicks, sessions) for name in used]
    if len(found) == 1:
        return found[0]
    which = jnp.asarray([used.index(name) for name in weightings])[lane]
    return tuple(
        jax.lax.select_n(which, *(jnp.asarray(each, jnp.float32) for each in column))
        for column in zip(*found, strict=True)
    )

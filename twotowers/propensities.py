"""Weights against unequal exposure (Hager et al. 2025, Section 6, Eq. 22).

The propensity of a cell is how often its document was shown at its position, counted
in the log itself: impressions over sessions of the query. Weighting every impression by
its inverse turns (impressions, clicks) of a shown cell into (sessions of the query,
sessions times click rate), so on counts the weighting is a change of the counts. A
deterministic policy shows each document in one position, always: every propensity is
1 and nothing changes.
"""

from __future__ import annotations

import jax.numpy as jnp


def inverse_propensity(impressions, clicks):
    """Impressions and clicks weighted by the inverse propensity of their cell.

    Args:
        impressions: [..., documents, positions] float.
        clicks: the same shape.

    Returns:
        weighted (impressions, clicks); cells never shown stay 0. Not clipped.
    """
    sessions = impressions[..., :1].sum(-2, keepdims=True)
    weight = jnp.where(impressions > 0, sessions / jnp.maximum(impressions, 1), 0)
    return impressions * weight, clicks * weight

"""Weights against unequal exposure (Hager et al. 2025, Section 6, Eq. 22).

The propensity of a cell is how often its document was shown at its position, counted
in the log itself: impressions over sessions of the query. Weighting every impression by
its inverse turns (impressions, clicks) of a shown cell into (sessions of the query,
sessions times click rate), so on counts the weighting is a change of the counts. A
deterministic policy shows each document in one position, always: every propensity is
1 and nothing changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twotowers.logs.counts import Counts, Rows


def inverse_propensity(counts: Counts | Rows) -> Counts | Rows:
    """The counts with every impression weighted by the inverse propensity of its cell.

    Args:
        counts: of any number of logs.

    Returns:
        float32 counts of the same layout; cells never shown stay 0. Not clipped.
    """
    shown = counts.impressions > 0
    sessions = np.broadcast_to(counts.spread(np.asarray(counts.sessions, np.float32)), shown.shape)
    rate = np.divide(
        counts.clicks, counts.impressions, out=np.zeros(shown.shape, np.float32), where=shown
    )
    return replace(
        counts, impressions=np.where(shown, sessions, np.float32(0)), clicks=sessions * rate
    )

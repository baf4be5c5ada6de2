"""Weights against unequal exposure (Hager et al. 2025, Section 6, Eq. 22).

The propensity of a cell is the share of the query's sessions that show its document at its
position. It is counted in the log: impressions over sessions. Weighting every impression by the
inverse turns (impressions, clicks) of a shown cell into (sessions, sessions times click rate).
So the weighting is a change of the counts. A deterministic policy shows each document at one
position only: then every propensity is 1 and nothing changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twotowers.logs.counts import Counts, Rows


def inverse_propensity(counts: Counts | Rows) -> Counts | Rows:
    """The counts with every impression weighted by the inverse propensity of its cell.

    Args:
        counts: the counts of any number of logs.

    Returns:
        float32 counts of the same layout, not clipped. Cells that were never shown stay 0.
    """
    shown = counts.impressions > 0
    sessions = np.broadcast_to(counts.spread(np.asarray(counts.sessions, np.float32)), shown.shape)
    rate = np.divide(
        counts.clicks, counts.impressions, out=np.zeros(shown.shape, np.float32), where=shown
    )
    return replace(
        counts, impressions=np.where(shown, sessions, np.float32(0)), clicks=sessions * rate
    )

"""Errors of estimates; the fits behind claims 13 and 16, by names that say how they were fitted."""

import numpy as np
import pandas as pd

from twotowers.claims.claims import rows_of
from twotowers.claims.statistics import select

FITS = {
    "early stopping, start default": {"setting": "stopped-early", "start": "random"},
    "early stopping, start zero": {"setting": "stopped-early", "start": "zero"},
    "early stopping, start truth": {"setting": "stopped-early", "start": "truth"},
    "no early stopping, start default": {"setting": "stopped-late"},
    "optimum": {"setting": "optimum"},
}
"""From a name to the rows of results."""
GROWN = "optimum-grown"
"""The exact optima of larger logs; the smallest has as many sessions as all other fits."""


def errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of position bias as errors: estimate less truth, -ln k."""
    truth = -np.log(rows["position"].astype(float))
    return rows.assign(value=rows["value"] - truth, metric="position_bias_error")


def named(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of those fits, with their name as `method`, and a multiple of sessions.

    The optimum at `sessions_factor` 1 is that of the log which the other fits share.
    """
    parts = [
        select(results, **where).assign(method=name, sessions_factor=1.0)
        for name, where in FITS.items()
        if where.keys() <= set(results)
    ]
    grown = select(results, setting=GROWN)
    if len(grown):
        factor = grown["sessions"] / grown["sessions"].min()
        grown = grown.assign(method="optimum", sessions_factor=factor)
        parts.append(grown[factor > 1])
    return pd.concat(parts, ignore_index=True)


def changes(results: pd.DataFrame, setting: str) -> pd.Series:
    """How far apart estimates from a start at random and at zero lie, by seed and position."""
    rows = rows_of(results, setting=setting, metric="position_bias", start=["random", "zero"])
    wide = rows.pivot(index=["seed", "position"], columns="start", values="value")
    return (wide["random"] - wide["zero"]).abs()

"""Data sets drawn anew: each counts as a run, though one seed draws several."""

from __future__ import annotations

import pandas as pd


def as_runs(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of all studies, with a seed of its own for every data set of study `redrawn`."""
    if "draw" not in results:
        return results
    draw = results["draw"].fillna(0).astype(int)
    return results.assign(seed=results["seed"] * (draw.max() + 1) + draw)

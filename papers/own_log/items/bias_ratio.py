"""Estimated position bias of each model, with percentiles over draws of the log."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from papers.own_log.curves import curves
from twotowers.claims.statistics import over_draws, select

MODELS = {
    "conditional": "Conditional (examination)",
    "two-tower": "Two-tower (odds)",
    "position-based": "Position-based (examination)",
    "position-based-em": "Position-based, by EM",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model and position: median and percentiles of the bias, as a ratio."""
    rows = select(results, setting=list(MODELS), metric="position_bias")
    ratios = rows.assign(value=np.exp(rows["value"])).dropna(subset="value")
    return over_draws(ratios, ["setting", "metric", "position"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """One panel, a curve per model."""
    figure, panel = curves(table, MODELS, "Position bias, relative to rank 1")
    panel.set_yscale("log")
    ticks = [tick for tick in (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01) if tick > table["low"].min() / 2]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    return figure

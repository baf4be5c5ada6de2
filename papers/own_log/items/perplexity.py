"""Perplexity of held-out clicks of each model, with percentiles over draws of the log."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.own_log.curves import curves
from twotowers.results.statistics import over_draws, select

MODELS = {
    "two-tower": "Two-tower",
    "position-based": "Position-based",
    "position-based-em": "Position-based, by EM",
    "document-rate": "No position bias",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model and position, and one for the mean over positions."""
    rows = select(results, setting=list(MODELS), metric=["perplexity", "mean_perplexity"])
    return over_draws(rows, ["setting", "metric", "position"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """One panel, a curve per model; the legend tells the means."""
    means = select(table, metric="mean_perplexity").set_index("setting")["value"]
    named = {key: f"{name}: {means[key]:.4f}" for key, name in MODELS.items()}
    figure, panel = curves(select(table, metric="perplexity"), named, "Perplexity")
    panel.legend(title="Mean over ranks")
    return figure

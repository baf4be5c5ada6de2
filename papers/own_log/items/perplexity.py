"""Perplexity of held-out clicks of each model, with percentiles over draws of the log."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.own_log.curves import curves
from twotowers.claims.statistics import over_draws, select

BASE = "document-rate"
MODELS = {
    "two-tower": "Two-tower",
    "position-based": "Position-based",
    "position-based-em": "Position-based, by EM",
}
KEYS = ["setting", "metric", "position"]


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model and position, and for the mean over positions; and the same less BASE.

    Draws differ in how predictable their held-out clicks are, but hardly in which model predicts
    them better: differences are taken within each draw.
    """
    metrics = ["perplexity", "mean_perplexity"]
    rows = select(results, setting=[BASE, *MODELS], metric=metrics)
    base = select(rows, setting=BASE).set_index(["metric", "position", "seed"])["value"]
    ours = select(rows, setting=list(MODELS))
    cells = pd.MultiIndex.from_frame(ours[["metric", "position", "seed"]])
    less = ours.assign(
        value=ours["value"].to_numpy() - base.loc[cells].to_numpy(),
        metric=ours["metric"] + "_less_base",
    )
    return over_draws(pd.concat([rows, less]), KEYS).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """One panel, a curve per model; the legend tells the means of what is drawn."""
    means = select(table, metric="mean_perplexity_less_base").set_index("setting")["value"]
    named = {key: f"{name}: {means[key]:+.4f}" for key, name in MODELS.items()}
    rows = select(table, metric="perplexity_less_base")
    figure, panel = curves(rows, named, "Perplexity less that without position bias")
    panel.axhline(0, color="#888888", linewidth=0.8, zorder=1)
    return figure

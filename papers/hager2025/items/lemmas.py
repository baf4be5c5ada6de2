"""Lemmas 5.1 and 5.2: residuals at exact optima, and position bias."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import (
    PAGE_WIDTH,
    categorical_looks,
    draw_curves,
    position_bias_panel,
    style,
)
from twotowers.results.statistics import over_seeds, select

MODELS = {"well-specified": "Well-specified", "misspecified": "Misspecified"}
RESIDUALS = {
    "largest_cell": "largest cell",
    "mean_cell": "mean cell",
    "largest_position_mean": "largest mean of a position",
}
# Below the first the study rounds; below the second the claim counts a residual as vanished.
FLOOR, VANISHED = 1e-8, 1e-6


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model, temperature and metric (and position): mean and 95 % interval."""
    keys = ["model", "strength", "temperature", "metric", "position"]
    metrics = [*RESIDUALS, "position_bias"]
    rows = select(results, setting="lemmas", model=list(MODELS), metric=metrics)
    return over_seeds(rows, keys).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """Two rows of two panels: residuals above position bias, one column per model."""
    with style():
        figure = Figure(figsize=(PAGE_WIDTH, 4.2), layout="constrained")
        axes = figure.subplots(2, 2, sharex="row", sharey="row")
        for (above, below), (model, title) in zip(axes.T, MODELS.items(), strict=True):
            above.set_title(title)
            rows = select(table, model=model)
            _residual_panel(above, select(rows, metric=list(RESIDUALS)))
            bias = select(rows, metric="position_bias")
            if not bias.empty:
                truth = -np.log(np.arange(1, bias["position"].max() + 1))
                position_bias_panel(below, bias, truth=truth)
        for panel in axes[:, 1]:
            panel.tick_params(labelleft=False)
            panel.set_ylabel("")
        for row in axes:
            row[0].legend(loc="upper right")
    return figure


def _residual_panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Sizes of residuals on a logarithmic scale; what vanishes lies in the grey zone."""
    order = pd.CategoricalDtype(list(RESIDUALS.values()), ordered=True)
    # Intervals over seeds mean nothing on this scale.
    rows = rows.assign(
        metric=rows["metric"].map(RESIDUALS).astype(order),
        value=rows["value"].clip(lower=FLOOR),
        low=np.nan,
        high=np.nan,
    )
    looks = categorical_looks(RESIDUALS.values())
    draw_curves(axes, rows, x="temperature", group="metric", look=looks.__getitem__)
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 4, 4)
    axes.axhspan(FLOOR / 4, VANISHED, color="#EEF0F2", zorder=0)
    axes.text(0.98, VANISHED / 1.6, "vanished", ha="right", va="top", fontsize=7,
              transform=axes.get_yaxis_transform())  # fmt: skip
    swept = sorted(rows["temperature"].unique())
    axes.set_xticks(swept, [f"{temperature:g}" for temperature in swept])
    axes.set_xlabel("Temperature τ")
    axes.set_ylabel("Residual (probability)")

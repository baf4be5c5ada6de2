"""Lemmas 5.1 and 5.2: residuals at exact optima, and position bias."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves, ticks
from twotowers.report.drawings import position_bias
from twotowers.report.figures import page

MODELS = {"well-specified": "Well-specified", "misspecified": "Misspecified"}
RESIDUALS = {
    "largest_cell": "largest cell",
    "mean_cell": "mean cell",
    "largest_position_mean": "largest mean of a position",
}
# Below the first the study rounds; below the second the claim counts a residual as vanished.
FLOOR, VANISHED = 1e-8, 1e-6


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    keys = ["model", "strength", "temperature", "metric", "position"]
    metrics = [*RESIDUALS, "position_bias"]
    rows = select(results, setting="lemmas", model=list(MODELS), metric=metrics)
    return over_seeds(rows, keys).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    figure = page(4.8)
    above, below = figure.subfigures(2, 1)
    _residuals(above, table)
    bias = select(table, metric="position_bias").rename(columns={"model": "setting"})
    position_bias.onto(below, bias, settings=MODELS)
    return figure


def _residuals(figure: SubFigure, table: pd.DataFrame) -> None:
    """Sizes of residuals on a logarithmic scale; what vanishes lies in the grey zone."""
    # Intervals over seeds mean nothing on this scale.
    rows = table.assign(value=table["value"].clip(lower=FLOOR), low=np.nan, high=np.nan)
    chart = Curves(rows, by={"metric": RESIDUALS}, col={"model": MODELS})
    plot = chart.plot("temperature")
    plot = plot.scale(x=ticks(chart.rows["temperature"]), y="log")
    plot = plot.limit(y=(FLOOR / 4, 4)).label(x="Temperature τ", y="Residual (probability)")
    chart.onto(figure, plot)
    for panel in figure.axes:
        panel.axhspan(FLOOR / 4, VANISHED, color="#EEF0F2", zorder=0)
        at = {"transform": panel.get_yaxis_transform(), "ha": "right", "va": "top"}
        panel.text(0.98, VANISHED / 1.6, "vanished", fontsize=7, **at)

"""Position bias by rank: a panel per setting, a curve per temperature, and the truth."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure

from twotowers.claims.statistics import compare
from twotowers.report.charts import Curves, ranks, symbols, with_truth
from twotowers.report.figures import page

LANES = ("strength", "temperature", "weighting")


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    where: Mapping | None = None,
) -> pd.DataFrame:
    """One row per setting, lane, position and source: mean and 95 % interval over seeds.

    Args:
        settings: From the settings to the titles of their panels, left to right.
        where: The lanes that are drawn, by column; all if absent.
    """
    keys = ["setting", *LANES, "metric", "position"]
    where = {"metric": "position_bias", "setting": list(settings), **(where or {})}
    # Some methods have no weights to choose.
    results = results.fillna({"weighting": "none"})
    return compare(results, published, keys, **where)


def draw(table: pd.DataFrame, *, settings: Mapping[str, str]) -> Figure:
    """A panel per setting, a curve per temperature; the truth is -ln k."""
    figure = page(2.75)
    onto(figure, table, settings=settings)
    return figure


def onto(figure: Figure | SubFigure, table: pd.DataFrame, *, settings: Mapping[str, str]) -> None:
    """What `draw` draws, on a part of a figure."""
    table = with_truth(
        table, ["setting", "position"], lambda at: -np.log(at["position"].astype(float))
    )
    curves = {"temperature": symbols("τ", table["temperature"])}
    chart = Curves(table, by=curves, col={"setting": settings})
    plot = ranks(chart.plot("position"), table["position"].max())
    chart.onto(figure, plot.label(y="Position bias logit"))

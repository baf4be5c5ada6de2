"""A measure along a lane, a curve per value of another; ours and the published in own panels.

Both are drawn on one axis, so that levels and shapes can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import compare, select, without_levels
from twotowers.report.charts import PANELS, Curves, in_panels, symbols, ticks

LANES = ("strength", "temperature", "weighting")


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    metric: str,
    where: Mapping | None = None,
    levels: bool = True,
) -> pd.DataFrame:
    """One row per setting, lane and source: mean and 95 % interval over seeds.

    Args:
        settings: From the settings to the titles of their panels, left to right.
        metric: What is measured.
        where: The lanes that are drawn, by column; all if absent.
        levels: Whether intervals are those of the values. If not, each seed's own level is taken
            out, intervals are those of differences, and published values have none.
    """
    where = {"metric": metric, "setting": list(settings), **(where or {})}
    if not levels:
        results = without_levels(select(results, **where), ["setting"])
        published = published.assign(sd=np.nan)
    return compare(results, published, ["setting", *LANES, "metric"], **where)


def draw(
    table: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    along: str,
    label: str,
    xlabel: str,
    curves: str = "temperature",
    symbol: str = "τ",
) -> Figure:
    """Of one setting, ours left of the published; of several, ours above the published.

    Args:
        along: The lane on the x axis.
        label, xlabel: Of the axes.
        curves: The lane whose values are curves.
        symbol: What the legend calls that lane.
    """
    one, sources = len(settings) == 1, {"panel": PANELS}
    chart = Curves(
        in_panels(table),
        by={curves: symbols(symbol, table[curves])},
        col=sources if one else {"setting": settings},
        row={} if one else sources,
    )
    plot = chart.plot(along).scale(x=ticks(table[along]))
    plot = plot.label(x=xlabel, y=label).share(y=True if one else "col")
    return chart.figure(plot, height=2.2 if one else 1.9)

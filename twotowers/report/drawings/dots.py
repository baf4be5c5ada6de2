"""Measures of settings: a line of dots per group of settings, a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from twotowers.report.charts import Dots
from twotowers.report.drawings.curves import Groups, grouped, of_settings

Hidden = Mapping[str, Sequence[str]]


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    groups: Groups,
    metrics: Mapping[str, str],
    hidden: Hidden | None = None,
) -> pd.DataFrame:
    """One row per setting, metric and source: mean and 95 % interval over seeds.

    Args:
        groups: From the names of lines to their dots, and from dots to their settings.
        metrics: From metrics to the titles of their panels.
        hidden: From metrics to lines whose dots are off their scale, and in the csv alone.
    """
    return of_settings(results, published, groups, [], metric=list(metrics))


def draw(
    table: pd.DataFrame, *, groups: Groups, metrics: Mapping[str, str], hidden: Hidden | None = None
) -> Figure:
    """A panel per metric, the lines from top to bottom."""
    dots, inner, outer = grouped(table, groups)
    for metric, lines in (hidden or {}).items():
        dots = dots[(dots["metric"] != metric) | ~dots["outer"].isin(lines)]
    dots = dots.assign(outer=pd.Categorical(dots["outer"], list(outer)))
    chart = Dots(dots, by={"inner": inner}, col={"metric": metrics})
    plot = chart.plot("outer", orient="y").label(x="", y="").share(x=False)
    # A line is as high as its dots need, which stand one below the other.
    most = dots.groupby(["metric", "outer"], observed=True).size().max()
    return chart.figure(plot, height=0.6 + len(groups) * max(0.22, 0.09 * most))

"""Measures of settings: a line of dots per group of settings, a panel per measure."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from twotowers.report.charts import Dots, Names
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
    return on_lines(dots, {"outer": outer}, by={"inner": inner}, metrics=metrics)


def on_lines(rows: pd.DataFrame, lines: Names, *, by: Names, metrics: Mapping[str, str]) -> Figure:
    """A panel per metric, and in it a line of dots per value of a column.

    Args:
        rows: what `twotowers.report.charts.Dots` draws, with a column metric.
        lines: the column, and the names of its values from top to bottom.
        by: what tells the dots of a line apart.
        metrics: from metrics to the titles of their panels.
    """
    ((column, names),) = lines.items()
    rows = rows.assign(line=pd.Categorical(rows[column].map(names), list(names.values())))
    chart = Dots(rows, by=by, col={"metric": metrics})
    plot = chart.plot("line", orient="y").label(x="", y="").share(x=False)
    # A line is as high as its dots need, which stand one below the other.
    most = rows.groupby(["metric", "line"], observed=True).size().max()
    return chart.figure(plot, height=0.6 + len(names) * max(0.22, 0.09 * most))

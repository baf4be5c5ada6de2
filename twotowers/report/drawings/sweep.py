"""Means along a lane, whiskers of one standard deviation over runs; a panel per measure."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import measured, moments, select, with_most
from twotowers.report.charts import Dots, symbols, ticks


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    needs: Sequence[str],
    metrics: Mapping[str, str],
    curves: str,
    names: Mapping[str, str] | None = None,
    keys: Sequence[str],
    where: Mapping | None = None,
    most: str | None = None,
    order: Mapping[str, Sequence] | None = None,
    printed_as: Mapping | None = None,
) -> pd.DataFrame:
    """One row per curve, place, metric, statistic and source; see `moments`.

    Args:
        needs: What the item needs.
        metrics: From metrics to the titles of their panels.
        curves: The lane whose values are curves.
        names: The values that are drawn, where they are words, and what they are called.
        keys: The key columns of the csv.
        where: Values of further lanes, by column.
        most: A lane of which only the largest value is taken.
        order: From key columns to their values in the order of the csv.
        printed_as: From values of `curves` to what they are among the printed numbers, if not the
            same.
    """
    where = {**(where or {}), "metric": list(metrics)}
    if names:
        where[curves] = list(names)
    ours = with_most(measured(results, needs, **where), most)
    # Where nothing is printed, the printed numbers may lack the lanes.
    theirs = select(published, setting=list(needs))
    if len(theirs):
        back = {printed: value for value, printed in (printed_as or {}).items()}
        theirs = select(theirs.assign(**{curves: theirs[curves].replace(back)}), **where)
    return moments(ours, theirs, keys, order)


def draw(
    table: pd.DataFrame,
    *,
    along: str,
    curves: str,
    metrics: Mapping[str, str],
    xlabel: str,
    names: Mapping[str, str] | None = None,
    symbol: str = "",
    powers: bool = False,
    shared: bool = False,
) -> Figure:
    """Dots of one place stand side by side, in the order of their names.

    Args:
        along: The lane on the x axis.
        xlabel: Its label.
        symbol: What the legend calls the curves' lane, where its values are numbers.
        powers: Whether it is drawn on a logarithmic scale.
        shared: Whether all measures have one unit, and their panels one range.
    """
    points = spread(table, [curves, along, "metric", "source"])
    by = {curves: names or symbols(symbol, points[curves])}
    chart = Dots(points, by=by, col={"metric": metrics}, interval="± 1 sd over runs")
    only = next(iter(metrics.values())) if len(metrics) == 1 else ""
    plot = chart.plot(along, lines=True).label(x=xlabel, y=only).share(y=shared)
    return chart.figure(
        plot.scale(x="log") if powers else plot.scale(x=ticks(points[along])), height=2.35
    )


def spread(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """From rows of mean and sd to a row per point: value, and one sd to both sides."""
    points = table.pivot(index=list(keys), columns="statistic", values="value")
    points = points.reindex(columns=["mean", "sd"]).reset_index().rename(columns={"mean": "value"})
    ends = {"low": points["value"] - points["sd"], "high": points["value"] + points["sd"]}
    return points.assign(**ends)

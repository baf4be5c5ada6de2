"""A measure along a lane: a panel per group of settings, a curve per setting in the group."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from twotowers.report.charts import Curves, ticks
from twotowers.results.statistics import compare, select

Groups = Mapping[str, Mapping[str, str]]


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    panels: Groups,
    metric: str,
    along: str,
    where: Mapping | None = None,
) -> pd.DataFrame:
    """One row per setting, value of the lane and source: mean and 95 % interval over seeds.

    Args:
        panels: From the titles of panels to their curves, and from curves to their settings.
        metric: What is measured.
        along: The lane on the x axis.
        where: Values of further lanes, by column.
    """
    return of_settings(results, published, panels, [along], metric=metric, **(where or {}))


def draw(
    table: pd.DataFrame,
    *,
    panels: Groups,
    along: str,
    label: str,
    xlabel: str,
    powers: bool = False,
    level: bool = True,
) -> Figure:
    """Panels side by side.

    Args:
        label, xlabel: Of the axes.
        powers: Whether the x axis is logarithmic.
        level: Whether all panels have the same y axis.
    """
    rows, inner, outer = grouped(table, panels)
    chart = Curves(rows, by={"inner": inner}, col={"outer": outer})
    plot = chart.plot(along).label(x=xlabel, y=label).share(y=level)
    plot = plot.scale(x="log") if powers else plot.scale(x=ticks(table[along]))
    return chart.figure(plot)


def of_settings(
    results: pd.DataFrame, published: pd.DataFrame, groups: Groups, lanes: list[str], **where
) -> pd.DataFrame:
    """Ours and the published of all settings of some groups."""
    settings = [setting for group in groups.values() for setting in group.values()]
    # Where nothing is printed, the printed numbers may lack the lanes.
    published = select(published, setting=settings)
    return compare(results, published, ["setting", *lanes, "metric"], setting=settings, **where)


def grouped(
    table: pd.DataFrame, groups: Groups
) -> tuple[pd.DataFrame, dict[str, str], dict[str, str]]:
    """The rows with each setting's place, and the names of places.

    Returns:
        The rows with columns outer (the group) and inner (within it), a setting that is in
        several groups once for each; the names of inner, and those of outer.
    """
    places = [
        {"outer": outer, "inner": inner, "setting": setting}
        for outer, group in groups.items()
        for inner, setting in group.items()
    ]
    inner = {place["inner"]: place["inner"] for place in places}
    return table.merge(pd.DataFrame(places), on="setting"), inner, {name: name for name in groups}

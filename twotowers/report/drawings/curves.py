"""A measure along a lane: a panel per group of settings, a curve per setting in the group.

A curve is a setting, or one of its lanes: {setting: em-pbm, where: {prior_mean: 0.5}}.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import compare, select
from twotowers.report.charts import Curves, ticks

Groups = Mapping[str, Mapping[str, str | Mapping]]


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, panels: Groups, metric: str, along: str
) -> pd.DataFrame:
    """One row per setting, value of the lane and source: mean and 95 % interval over seeds.

    Args:
        panels: From the titles of panels to their curves, and from curves to their settings, or
            to a setting and where in it.
        metric: What is measured.
        along: The lane on the x axis.
    """
    return of_settings(results, published, panels, [along], metric=metric)


def draw(table: pd.DataFrame, *, panels: Groups, along: str, label: str, xlabel: str) -> Figure:
    """Draw the panels side by side, with a curve per setting.

    Args:
        table: What `table` returns.
        panels: As in `table`.
        along: The column on the x axis.
        label: The name of the y axis.
        xlabel: The name of the x axis.
    """
    rows, inner, outer = grouped(table, panels)
    chart = Curves(rows, by={"inner": inner}, col={"outer": outer})
    plot = chart.plot(along).label(x=xlabel, y=label).share(y=True)
    return chart.figure(plot.scale(x=ticks(table[along])))


def of_settings(
    results: pd.DataFrame, published: pd.DataFrame, groups: Groups, lanes: list[str], **where
) -> pd.DataFrame:
    """Ours and the published of all settings of some groups."""
    places = list(_places(groups))
    settings = [place["setting"] for *_, place in places]
    own = dict.fromkeys(column for *_, place in places for column in place)
    chosen = np.logical_or.reduce([_at(results, place) for *_, place in places])
    # Where nothing is printed, the printed numbers may lack the lanes.
    published = select(published, setting=settings)
    published = published.assign(**{name: np.nan for name in own if name not in published})
    keys = list(dict.fromkeys([*own, *lanes, "metric"]))
    return compare(results[chosen], published, keys, setting=settings, **where)


def grouped(
    table: pd.DataFrame, groups: Groups
) -> tuple[pd.DataFrame, dict[str, str], dict[str, str]]:
    """The rows with each setting's place, and the names of places.

    Returns:
        The rows with columns outer (the group) and inner (within it), a setting that is in
        several groups once for each; the names of inner, and those of outer.
    """
    places = list(_places(groups))
    rows = [
        table[_at(table, place)].assign(outer=outer, inner=inner) for outer, inner, place in places
    ]
    names = {inner: inner for _, inner, _ in places}
    return pd.concat(rows, ignore_index=True), names, {name: name for name in groups}


def _places(groups: Groups) -> Iterator[tuple[str, str, dict]]:
    """Outer, inner, and the columns' values there: a setting, and lanes if it names any."""
    for outer, group in groups.items():
        for inner, place in group.items():
            named = {"setting": place} if isinstance(place, str) else place
            yield outer, inner, {"setting": named["setting"], **named.get("where", {})}


def _at(rows: pd.DataFrame, place: Mapping) -> np.ndarray:
    """[rows] whether a row is of a place."""
    return rows.index.isin(select(rows, **place).index)

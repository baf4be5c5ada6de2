"""A measure along a lane, a curve per value of another; ours and the published in own panels.

Levels depend on the data set, and a stand-in has its own: panels have ranges of the same span, so
that shapes can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from twotowers.report.figures import (
    drawable,
    equal_spans,
    line_panel,
    panels,
    shared_legend,
    style,
)
from twotowers.results.statistics import compare, select, without_levels

SOURCES = {"reproduced": "Reproduced", "published": "Published"}
LANES = ("strength", "temperature", "weighting")


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    metric: str,
    where: Mapping | None = None,
    lanes: Sequence[str] = LANES,
    levels: bool = True,
) -> pd.DataFrame:
    """One row per setting, lane and source: mean and 95 % interval over seeds.

    Args:
        settings: From the settings to the titles of their panels, left to right.
        metric: What is measured.
        where: The lanes that are drawn, by column; all if absent.
        lanes: The lane columns.
        levels: Whether intervals are those of the values. If not, each seed's own level is taken
            out, intervals are those of differences, and published values have none.
    """
    where = {"metric": metric, "setting": list(settings), **(where or {})}
    if not levels:
        results = without_levels(select(results, **where), ["setting"])
        published = published.assign(sd=np.nan)
    return compare(results, published, ["setting", *lanes, "metric"], **where)


def draw(
    table: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    along: str,
    label: str,
    xlabel: str,
    curves: str = "temperature",
    symbol: str = "",
    span: float = 0.0,
) -> Figure:
    """Of one setting, ours left of the published; of several, ours above the published.

    Args:
        along: The lane on the x axis.
        label, xlabel: Of the axes.
        curves: The lane whose values are curves.
        symbol: What the legend calls that lane, where it is no temperature.
        span: The least range of the y axis.
    """
    one = len(settings) == 1
    rows = 1 if one else len(SOURCES)
    places = [(source, setting) for source in SOURCES for setting in settings]
    with style():
        figure, axes = panels(
            len(places) // rows, rows=rows, share_y=False, panel_height=2.2 if one else 1.9
        )
        for panel, (source, setting) in zip(axes.flat, places, strict=True):
            cells = select(table, setting=setting, source=source)
            if curves != "temperature":
                cells = cells.assign(**{curves: _named(cells[curves], symbol)})
            if drawable(panel, cells):
                line_panel(panel, cells, x=along, group=curves, xlabel=xlabel, ylabel=label)
            if one or panel in axes[0]:
                panel.set_title(SOURCES[source] if one else settings[setting])
            if not one and panel in axes[:, 0]:
                panel.set_ylabel(f"{SOURCES[source]}\n{label}")
        equal_spans(axes.flat, at_least=span)
        shared_legend(figure)
    return figure


def _named(values: pd.Series, symbol: str) -> pd.Categorical:
    """Values as the legend shows them, in their own order and not the alphabet's."""
    names = {value: f"{symbol} = {value:g}".replace("-", "−") for value in sorted(values.unique())}
    return pd.Categorical(values.map(names), categories=list(names.values()), ordered=True)

"""Means along a lane, whiskers of one standard deviation over runs; a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import GREY, REPRODUCED, Look, panels, shared_legend, style
from twotowers.results.moments import measured, moments, with_most
from twotowers.results.statistics import select

WHISKER = {"capsize": 2, "elinewidth": 0.9, "capthick": 0.9}
DODGE = 0.09
"""How far apart the curves' points of one place are drawn."""


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    needs: Sequence[str],
    metrics: Mapping[str, str],
    curves: str,
    looks: Sequence[Sequence],
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
        looks: Of each curve its value, colour, marker and name.
        keys: The key columns of the csv.
        where: Values of further lanes, by column.
        most: A lane of which only the largest value is taken.
        order: From key columns to their values in the order of the csv.
        printed_as: From values of `curves` to what they are among the printed numbers, if not the
            same.
    """
    where = {**(where or {}), "metric": list(metrics)}
    values = [value for value, *_ in looks]
    ours = with_most(measured(results, needs, **where, **{curves: values}), most)
    names = {value: (printed_as or {}).get(value, value) for value in values}
    theirs = select(published, setting=list(needs), **where, **{curves: list(names.values())})
    back = {printed: value for value, printed in names.items()}
    if len(theirs):
        theirs = theirs.assign(**{curves: theirs[curves].replace(back)})
    return moments(ours, theirs, keys, order)


def draw(
    table: pd.DataFrame,
    *,
    along: str,
    curves: str,
    looks: Sequence[Sequence],
    metrics: Mapping[str, str],
    xlabel: str,
    powers: bool = False,
) -> Figure:
    """Curves are drawn side by side, in the order of `looks`.

    Args:
        along: The lane on the x axis.
        xlabel: Its label.
        powers: Whether it is drawn on a logarithmic scale.
    """
    columns = [curves, along, "metric", "source"]
    points = table.pivot(index=columns, columns="statistic", values="value")
    points = points.reindex(columns=["mean", "sd"]).reset_index()
    place = points[along].astype(float)
    points["at"] = np.log10(place) if powers else place
    ticks = points[[along, "at"]].drop_duplicates()
    names = [_power(value) if powers else f"{value}" for value in ticks[along]]
    drawn = {value: Look(*look) for value, *look in looks}
    with style():
        figure, axes = panels(len(metrics), panel_height=2.35)
        for panel, (metric, name) in zip(axes.flat, metrics.items(), strict=True):
            _panel(panel, select(points, metric=metric), curves, drawn)
            panel.set_title(name)
            panel.set_xlabel(xlabel)
            panel.set_xticks(ticks["at"], names)
        axes[0, 0].set_ylabel("Mean over runs")
        shared_legend(figure)
    return figure


def _panel(axes: Axes, points: pd.DataFrame, curves: str, looks: Mapping[object, Look]) -> None:
    looks = {value: look for value, look in looks.items() if (points[curves] == value).any()}
    dodge = DODGE * (np.arange(len(looks)) - (len(looks) - 1) / 2)
    beside = dodge.max(initial=0)
    for offset, (value, look) in zip(dodge, looks.items(), strict=True):
        curve = points[points[curves] == value].sort_values("at")
        ours, theirs = (select(curve, source=source) for source in ("reproduced", "published"))
        axes.errorbar(
            ours["at"] + offset, ours["mean"], yerr=ours["sd"].fillna(0), color=look.colour,
            marker=look.marker, markeredgecolor="white", markeredgewidth=0.4, label=look.label,
            **REPRODUCED, **WHISKER,
        )  # fmt: skip
        beside += DODGE * (len(theirs) > 0)
        axes.errorbar(
            theirs["at"] + beside, theirs["mean"], yerr=theirs["sd"].fillna(0),
            color=look.muted, marker=look.marker, markerfacecolor="white", markersize=3.6,
            linestyle="none", zorder=2, **WHISKER,
        )  # fmt: skip
    axes.errorbar(
        [], [], yerr=[], color=GREY, linestyle="none", label="± 1 sd over runs", **WHISKER
    )
    if (points["source"] == "published").any():
        axes.plot([], [], "o", color=GREY, markerfacecolor="white", markersize=3.6,
                  label="published")  # fmt: skip


def _power(number: int) -> str:
    exponent = round(np.log10(number))
    return rf"$10^{{{exponent}}}$" if exponent > 1 and number == 10**exponent else f"{number:g}"

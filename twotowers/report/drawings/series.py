"""A measure along a lane: a panel per value of one column, a curve per value of another."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import compare, select, without_levels
from twotowers.report.charts import PANELS, Curves, in_panels, symbols, ticks

Named = Mapping[str, Mapping[str, str] | Sequence[Sequence] | str]


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    keys: Sequence[str],
    where: Mapping,
    most: str | None = None,
    levels: bool = True,
) -> pd.DataFrame:
    """One row per key and source: mean and 95 % interval over seeds.

    Args:
        keys: The key columns of the csv.
        where: The selection, by column.
        most: A lane of which only our largest value is taken.
        levels: Whether intervals are those of the values. If not, each seed's own level is taken
            out, intervals are those of differences, and published values have none.
    """
    if not levels:
        results = without_levels(select(results, **where), ["setting"])
        published = published.assign(sd=np.nan)
    largest = {most: results[most].max()} if most else {}
    return compare(results, published, list(keys), **where, **largest)


def draw(
    table: pd.DataFrame,
    *,
    along: str,
    by: Named,
    label: str,
    xlabel: str,
    col: Named | None = None,
    drawn: Mapping | None = None,
    axis: str = "",
    limits: Sequence[float] | None = None,
    height: float | None = None,
    apart: bool = False,
) -> Figure:
    """Draw panels side by side.

    Args:
        along: The lane on the x axis.
        by, col: Of curves and of panels: a column, and its values with their names (as pairs if
            they are numbers), or what the legend calls the column.
        label, xlabel: Of the axes.
        drawn: What of the table is drawn, by column; all if absent.
        axis: "log" if the x axis is logarithmic, "ticks" if it has a tick at each value.
        limits: Of the y axis.
        height: Of the figure, in inches.
        apart: Whether ours and the published have panels of their own, on one axis, so that levels
            and shapes can be compared: side by side, or, where `col` has panels, below each other.
    """
    rows = select(table, **(drawn or {}))
    panels = {"col" if col is None else "row": {"panel": PANELS}} if apart else {}
    if apart:
        rows, height = in_panels(rows), height or (2.2 if col is None else 1.9)
    names = {"col": _names(rows, col or {})} | panels
    chart = Curves(rows, by=_names(rows, by), **names)
    plot = chart.plot(along).label(x=xlabel, y=label)
    if axis:
        plot = plot.scale(x="log" if axis == "log" else ticks(rows[along]))
    plot = plot.limit(y=tuple(limits)) if limits else plot
    plot = plot.share(y=True if col is None else "col") if apart else plot
    return chart.figure(plot, **({"height": height} if height else {}))


def _names(rows: pd.DataFrame, columns: Named) -> dict:
    return {
        column: symbols(names, rows[column]) if isinstance(names, str) else dict(names)
        for column, names in columns.items()
    }

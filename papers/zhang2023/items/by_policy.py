"""A measure along a lane or over training: a curve per logging policy, a panel per setting.

The paper's figures are not in the text that we have, so that nothing printed is drawn beside them.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from papers.zhang2023.winners import POLICIES, won
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves, Dots, with_truth


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    metric: str,
    along: str,
    chosen_by: str | None = None,
) -> pd.DataFrame:
    """One row per setting, policy and place (`along`): mean and 95 % interval over seeds.

    `chosen_by` is the winner of tuned lanes that is drawn, "ndcg" or "clicks"; all lanes if absent.
    """
    parts = [
        won(results, name, chosen_by) if chosen_by else select(results, setting=name)
        for name in settings
    ]
    rows = select(pd.concat(parts), metric=metric)
    # Means are of the seeds that trained so long.
    values = over_seeds(rows, ["setting", "mixing_weight", "metric", along])
    return values.assign(source="reproduced")


def draw(
    table: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    along: str,
    label: str,
    xlabel: str,
    log: bool = False,
    span: float = 0.0,
    shared: bool = False,
    first: float | None = None,
) -> Figure:
    """Panels side by side; with position bias goes its truth, from the place `first` on.

    Values that were tried, which are no whole numbers, are equally far apart, and their dots are
    side by side.

    The y axis, of all panels if `shared`, has a range of `span` or more, and room for all means.
    Intervals of few seeds may be wider than it.
    """
    if first is not None:
        table = table[table[along] >= first]
    if "position" in table:
        table = with_truth(
            table, ["setting", "position"], lambda at: -np.log(at["position"].astype(float))
        )
    whole = (table[along] % 1 == 0).all()
    lanes = {"by": {"mixing_weight": POLICIES}, "col": {"setting": settings}}
    if whole:
        chart = Curves(table, **lanes)
        plot = chart.plot(along)
    else:
        table = table.sort_values(along).assign(**{along: lambda at: at[along].map("{:g}".format)})
        chart = Dots(table, **lanes)
        plot = chart.plot(along, lines=True)
    plot = plot.label(x=xlabel, y=label).share(y=False)
    figure = chart.figure(plot.scale(x="log") if log else plot)
    if whole and not log:
        for axes in figure.axes:
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    own = [table.loc[shared | (table["setting"] == name), "value"] for name in settings]
    # A step of the same size looks the same in every panel, and one below `span` is not blown up.
    spans = np.nan_to_num([means.max() - means.min() for means in own])
    half = max(span, 1.2 * spans.max()) / 2 or 0.01
    for axes, means in zip(figure.axes, own, strict=True):
        if means.notna().any():
            middle = means.agg(["min", "max"]).mean()
            axes.set_ylim(middle - half, middle + half)
    return figure

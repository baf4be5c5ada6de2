"""A measure along a lane or over training: a curve per logging policy, a panel per setting.

The paper's figures are not in the text that we have, so that nothing printed is drawn beside them.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from papers.zhang2023.winners import POLICIES, won
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves, with_truth


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

    The y axis, of all panels if `shared`, has a range of `span` or more, and room for all means.
    Intervals of few seeds may be wider than it.
    """
    if first is not None:
        table = table[table[along] >= first]
    if "position" in table:
        table = with_truth(
            table, ["setting", "position"], lambda at: -np.log(at["position"].astype(float))
        )
    chart = Curves(table, by={"mixing_weight": POLICIES}, col={"setting": settings})
    plot = chart.plot(along).label(x=xlabel, y=label).share(y=False)
    figure = chart.figure(plot.scale(x="log") if log else plot)
    if (table[along] % 1 == 0).all() and not log:
        for axes in figure.axes:
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    for axes, name in zip(figure.axes, settings, strict=True):
        means = table.loc[shared | (table["setting"] == name), "value"].dropna()
        if means.size:
            room = 0.1 * (means.max() - means.min()) or 0.01
            axes.set_ylim(means.min() - room, means.max() + room)
    equal_spans(figure.axes, at_least=span)
    return figure


def equal_spans(axes: Iterable[Axes], *, at_least: float = 0.0) -> None:
    """Give panels that do not share y ranges of one length, each about its own data.

    A step of the same size then looks the same in every panel, whatever its level; a range of
    `at_least` is not filled by noise. Empty panels are left alone.
    """
    drawn = [panel for panel in axes if panel.has_data()]
    ends = np.array([panel.get_ylim() for panel in drawn]).reshape(-1, 2)
    half = np.ptp(ends, axis=1).max(initial=at_least) / 2
    for panel, middle in zip(drawn, ends.mean(axis=1), strict=True):
        panel.set_ylim(middle - half, middle + half)

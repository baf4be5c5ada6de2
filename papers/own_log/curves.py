"""A curve per model against the rank, with a band: what both figures are."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import categorical_looks, draw_curves, style
from twotowers.results.statistics import select

SIZE = 5.2, 3.6


def curves(table: pd.DataFrame, models: dict[str, str], label: str) -> tuple[Figure, Axes]:
    """Draw the table's values.

    Args:
        table: columns setting, position, value, low, high.
        models: from each setting to its name in the legend, in order.
        label: of the vertical axis.
    """
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        panel = figure.subplots()
        order = pd.CategoricalDtype(list(models.values()), ordered=True)
        rows = select(table, setting=list(models))
        rows = rows.assign(setting=rows["setting"].map(models).astype(order))
        looks = categorical_looks(models.values())
        draw_curves(panel, rows, x="position", group="setting", look=looks.__getitem__)
        panel.set(xlabel="Rank", ylabel=label)
        panel.set_xticks(sorted(rows["position"].dropna().unique()))
        panel.legend()
    return figure, panel

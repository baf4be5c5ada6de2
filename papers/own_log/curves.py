"""A curve per model against the rank, with a band: what both figures are."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.charts import Curves, ranks


def curves(table: pd.DataFrame, models: dict[str, str], label: str) -> tuple[Figure, Axes]:
    """Draw the table's values.

    Args:
        table: columns setting, position, value, low, high, source.
        models: from each setting to its name in the legend, in order.
        label: of the vertical axis.
    """
    chart = Curves(table, by={"setting": models}, interval="2.5 to 97.5 percentile")
    plot = ranks(chart.plot("position"), table["position"].max()).label(y=label)
    figure = chart.figure(plot, width=5.2, height=3.05)
    return figure, figure.axes[0]

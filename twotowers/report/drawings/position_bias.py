"""Position bias by rank: a panel per setting, a curve per temperature, and the truth -ln k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from twotowers.report.figures import drawable, panels, position_bias_panel, shared_legend, style
from twotowers.results.statistics import compare, select

LANES = ("strength", "temperature", "weighting")


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    where: Mapping,
    lanes: Sequence[str] = LANES,
) -> pd.DataFrame:
    """One row per setting, lane, position and source: mean and 95 % interval over seeds.

    Args:
        settings: From the settings to the titles of their panels, left to right.
        where: The lanes that are drawn, by column.
        lanes: The lane columns.
    """
    keys = ["setting", *lanes, "metric", "position"]
    where = {"metric": "position_bias", "setting": list(settings), **where}
    return compare(results, published, keys, **where)


def draw(table: pd.DataFrame, *, settings: Mapping[str, str]) -> Figure:
    """A panel per setting."""
    with style():
        figure, axes = panels(len(settings))
        for panel, (setting, title) in zip(axes.flat, settings.items(), strict=True):
            panel.set_title(title)
            rows = select(table, setting=setting)
            if drawable(panel, rows):
                truth = -np.log(np.arange(1, rows["position"].max() + 1))
                position_bias_panel(panel, rows, truth=truth)
        shared_legend(figure)
    return figure

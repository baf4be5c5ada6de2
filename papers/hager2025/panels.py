"""What the items of this paper share: which rows they take, and panels in the paper's order."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.figures import panels, position_bias_panel, shared_legend, style
from twotowers.statistics import compare, select

LANE = ["setting", "strength", "temperature", "weighting"]

FIT = {
    "fit-linear": "Linear tower,\nlinear relevance",
    "fit-deep": "Deep tower,\nnon-linear relevance",
    "fit-embedding": "One parameter per\nquery-document pair",
}
MISFIT = {
    "misfit-linear": "Linear tower,\nnon-linear relevance",
    "misfit-omitted": "Deep tower,\nfeatures omitted",
    "misfit-expert": "Deep tower,\nexpert policy",
}
"""From the settings of a figure to the titles of its panels, left to right."""


def bias_table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    settings: dict[str, str],
    *,
    strength: int,
    weighting: str = "none",
) -> pd.DataFrame:
    """Position bias of some settings at one strength: one row per position and temperature."""
    return compare(
        results,
        published,
        [*LANE, "metric", "position"],
        metric="position_bias",
        setting=list(settings),
        strength=strength,
        weighting=weighting,
    )


def ndcg_table(results: pd.DataFrame, published: pd.DataFrame, settings: list[str]) -> pd.DataFrame:
    """nDCG@10 of some settings, unweighted: one row per strength and temperature."""
    return compare(
        results,
        published,
        [*LANE, "metric"],
        metric="ndcg@10",
        setting=settings,
        weighting="none",
    )


def draw_bias(table: pd.DataFrame, settings: dict[str, str]) -> Figure:
    """A panel per setting: position bias, one curve per temperature, and the truth -ln k."""
    with style():
        figure, axes = panels(len(settings))
        truth = -np.log(np.arange(1, table["position"].max() + 1))
        for panel, (setting, title) in zip(axes.flat, settings.items(), strict=True):
            panel.set_title(title)
            rows = select(table, setting=setting)
            if _drawable(panel, rows):
                position_bias_panel(panel, rows, truth=truth)
        shared_legend(figure)
    return figure


def _drawable(panel: Axes, rows: pd.DataFrame) -> bool:
    """Whether there is anything to draw; if not, the panel says so."""
    if rows.empty:
        panel.text(0.5, 0.5, "no results", transform=panel.transAxes, ha="center", va="center")
    return not rows.empty

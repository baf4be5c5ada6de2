"""What the items of this paper share: which rows they take, and panels in the paper's order."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import (
    equal_spans,
    line_panel,
    panels,
    position_bias_panel,
    shared_legend,
    style,
)
from twotowers.results.statistics import compare, select

LANE = ["setting", "strength", "temperature", "weighting"]

SOURCES = {"reproduced": "Reproduced", "published": "Published"}
STRENGTH = "Policy strength α (−1 inverse, 0 random, 1 full)"
TEMPERATURE = "Temperature τ"
# The range of the paper's own Fig. 1 (.71 to .735).
NDCG_RANGE = 0.025

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
        for panel, (setting, title) in zip(axes.flat, settings.items(), strict=True):
            panel.set_title(title)
            rows = select(table, setting=setting)
            if _drawable(panel, rows):
                truth = -np.log(np.arange(1, rows["position"].max() + 1))
                position_bias_panel(panel, rows, truth=truth)
        shared_legend(figure)
    return figure


def draw_ndcg_by_strength(table: pd.DataFrame) -> Figure:
    """nDCG@10 against policy strength, one curve per temperature: ours, and the published.

    A panel each, with ranges of the same span: the level depends on the data set (a stand-in
    has its own), the shape is what the paper speaks of.
    """
    with style():
        figure, axes = panels(2, share_y=False)
        for panel, (source, title) in zip(axes.flat, SOURCES.items(), strict=True):
            panel.set_title(title)
            rows = select(table, source=source)
            if _drawable(panel, rows):
                line_panel(panel, rows, x="strength", xlabel=STRENGTH)
        equal_spans(axes.flat, at_least=NDCG_RANGE)
        shared_legend(figure)
    return figure


def draw_ndcg_by_temperature(table: pd.DataFrame, settings: dict[str, str]) -> Figure:
    """nDCG@10 against temperature, one curve per strength: ours above, the published below.

    A panel per setting and source, all with ranges of the same span.
    """
    with style():
        figure, axes = panels(len(settings), rows=len(SOURCES), share_y=False, panel_height=1.9)
        for row, (source, name) in zip(axes, SOURCES.items(), strict=True):
            for panel, (setting, title) in zip(row, settings.items(), strict=True):
                panel.set_title(title if panel in axes[0] else "")
                rows = select(table, setting=setting, source=source)
                if _drawable(panel, rows):
                    named = rows.assign(strength=_strength_names(rows["strength"]))
                    line_panel(panel, named, x="temperature", group="strength", xlabel=TEMPERATURE)
            row[0].set_ylabel(f"{name}\nnDCG@10")
        equal_spans(axes.flat, at_least=NDCG_RANGE)
        shared_legend(figure)
    return figure


def _strength_names(strengths: pd.Series) -> pd.Categorical:
    """Strengths as the legend shows them, in their own order and not the alphabet's."""
    names = {value: f"α = {value:g}".replace("-", "−") for value in sorted(strengths.unique())}
    return pd.Categorical(strengths.map(names), categories=list(names.values()), ordered=True)


def _drawable(panel: Axes, rows: pd.DataFrame) -> bool:
    """Whether there is anything to draw; if not, the panel says so."""
    if rows.empty:
        panel.text(0.5, 0.5, "no results", transform=panel.transAxes, ha="center", va="center")
    return not rows.empty

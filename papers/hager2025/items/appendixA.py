"""Appendix A: estimated against true bias of 30 configurations, by who is shown where."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import TRUTH, categorical_looks, panels, shared_legend, style
from twotowers.results.statistics import BAND, over_seeds, select

REGIMES = {
    "connected": "Connected",
    "content isolated": "Content\nisolated",
    "content and device isolated": "Content and\ndevice isolated",
    "isolated, with bridges": "Isolated,\nwith bridges",
}
POINTS = ["truth", "estimate", "component"]
SUMMARIES = [
    "components",
    "largest_error",
    "largest_error_within_component",
    "largest_effect_of_start",
]


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per regime, configuration and metric.

    Estimates are those of the first seed, as the shifts of another are others; what sums up a
    regime is a mean over seeds.
    """
    rows = select(results, setting="appendix_a", regime=list(REGIMES))
    rows = rows.rename(columns={"position": "configuration"})
    keys = ["regime", "configuration", "metric"]
    points = select(rows[rows["seed"] == rows["seed"].min()], metric=POINTS)
    bands = [over_seeds(part, keys) for part in (points, select(rows, metric=SUMMARIES))]
    return pd.concat(bands, ignore_index=True)[[*keys, *BAND]].assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """A panel per regime: estimated against true bias, a colour and marker per component."""
    with style():
        figure, axes = panels(len(REGIMES), panel_height=2.1)
        for panel, (regime, title) in zip(axes.flat, REGIMES.items(), strict=True):
            panel.set_title(title)
            _regime_panel(panel, select(table, regime=regime))
        limits = [*axes[0, 0].get_xlim(), *axes[0, 0].get_ylim()]
        ends = [min(limits), max(limits)]
        for panel in axes.flat:
            panel.plot(ends, ends, label="estimate = truth", **{**TRUTH, "zorder": 1})
            panel.set(xlim=ends, ylim=ends, xlabel="True bias", ylabel="Estimated bias")
            panel.set_aspect("equal")
        shared_legend(figure)
    return figure


def _regime_panel(axes: Axes, rows: pd.DataFrame) -> None:
    points = select(rows, metric=POINTS).pivot(
        index="configuration", columns="metric", values="value"
    )
    looks = categorical_looks(range(1, 7))
    for component, part in points.groupby(points.get("component")):
        look = looks[int(component)]
        axes.plot(
            part["truth"], part["estimate"], look.marker, color=look.colour, markersize=4.2,
            markeredgecolor="white", markeredgewidth=0.4,
        )  # fmt: skip
    summary = rows.set_index("metric")["value"]
    count = summary.get("components")
    if count is not None:
        text = (
            f"{count:g} component{'s' if count > 1 else ''}\n"
            f"largest error {summary['largest_error']:.2f},\n"
            f"within one {summary['largest_error_within_component']:.2f}"
        )
        axes.text(0.97, 0.03, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=6.5)

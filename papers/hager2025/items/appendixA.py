"""Appendix A: estimated against true bias of 30 configurations, by who is shown where."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.claims.statistics import BAND, over_seeds, select
from twotowers.report.charts import TRUTH, Dots

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
    points = select(table, metric=POINTS).pivot(
        index=["regime", "configuration", "source"], columns="metric", values="value"
    )
    points = points.rename(columns={"estimate": "value", "truth": "true bias"}).reset_index()
    points = points.assign(component=points["component"].map("component {:g}".format))
    names = sorted(points["component"].unique())
    chart = Dots(
        points.assign(low=np.nan, high=np.nan),
        by={"component": dict(zip(names, names, strict=True))},
        col={"regime": REGIMES},
    )
    biases = points[["true bias", "value"]]
    ends = biases.min(axis=None) - 0.2, biases.max(axis=None) + 0.2
    plot = chart.plot("true bias").label(x="True bias", y="Estimated bias")
    plot = plot.limit(x=ends, y=ends)
    figure = chart.figure(plot, height=2.1)
    for panel, regime in zip(figure.axes, REGIMES, strict=True):
        panel.axline((0, 0), (1, 1), **TRUTH, zorder=1)
        panel.set_aspect("equal")
        _summary(panel, select(table, regime=regime).set_index("metric")["value"])
    return figure


def _summary(axes: Axes, values: pd.Series) -> None:
    count = values.get("components")
    if count is not None:
        text = (
            f"{count:g} component{'s' if count > 1 else ''}\n"
            f"largest error {values['largest_error']:.2f},\n"
            f"within one {values['largest_error_within_component']:.2f}"
        )
        axes.text(0.97, 0.03, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=6.5)

"""How often a random data set is identifiable, and Example 2's estimate of it (Appendix A.2).

Features and bias factors are drawn independently and uniformly. The estimate is Gilbert's, for
graphs whose edges are independent; those of an identifiability graph are not.

To be seen: dots, the simulation, climb from 0 to 1 as rows are added, later the more bias
factors there are; how far the estimate, with and without the limits of its last step, is off.
Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from papers.chen2024.panels import rows, thousands
from twotowers.figures import GREY, categorical_looks, panels, shared_legend, style
from twotowers.statistics import over_seeds, select

KEYS = ["features", "factors", "rows", "metric"]
CURVES = {"estimate": "-", "estimate_finite": (0, (2, 1.5))}
LABELS = {"estimate": "Example 2", "estimate_finite": "Example 2, before its limits"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per |X|, |T|, |D| and metric; simulated frequencies have a 95 % interval."""
    metrics = ["simulated", "standard_error", *CURVES]
    summary = over_seeds(rows(results, "example2", method="graph", metric=metrics), KEYS)
    error = select(summary, metric="standard_error").set_index(KEYS[:3])["value"]
    half = 1.96 * error.reindex(pd.MultiIndex.from_frame(summary[KEYS[:3]])).to_numpy()
    simulated = summary["metric"] == "simulated"
    summary["low"] = (summary["value"] - half).where(simulated)
    summary["high"] = (summary["value"] + half).where(simulated)
    return summary.astype(dict.fromkeys(KEYS[:3], "Int64")).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """A panel per |X|: frequency against |D|, a colour per |T|."""
    widths = sorted(table["features"].unique())
    looks = categorical_looks(sorted(table["factors"].unique()))
    with style():
        figure, axes = panels(len(widths), panel_height=2.4)
        for panel, width in zip(axes.flat, widths, strict=True):
            panel.set_title(f"|X| = {width:,}")
            for factors, look in looks.items():
                _curves(panel, select(table, features=width, factors=factors), factors, look)
            panel.set(xscale="log", ylim=(-0.04, 1.04), xlabel="Rows |D|")
            panel.xaxis.set_major_formatter(thousands())
            panel.xaxis.set_minor_formatter(NullFormatter())
        axes[0, 0].set_ylabel("Probability of identifiability")
        for metric, dashes in CURVES.items():
            axes[0, 0].plot([], [], color=GREY, linestyle=dashes, label=LABELS[metric])
        shared_legend(figure)
    return figure


def _curves(axes: Axes, cells: pd.DataFrame, factors: int, look) -> None:
    for metric, dashes in CURVES.items():
        line = select(cells, metric=metric).sort_values("rows")
        axes.plot(line["rows"], line["value"], color=look.colour, linestyle=dashes, linewidth=1.1)
    dots = select(cells, metric="simulated").sort_values("rows")
    whiskers = [dots["value"] - dots["low"], dots["high"] - dots["value"]]
    axes.errorbar(
        dots["rows"].astype(float), dots["value"], yerr=whiskers, color=look.colour, capsize=2,
        marker=look.marker, markersize=3.6, linestyle="none", elinewidth=0.9, zorder=3,
        label=f"simulated, |T| = {factors:,}",
    )  # fmt: skip

"""What another draw of the fully synthetic data set changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import GREY, Look, panels, shared_legend, style
from twotowers.results.moments import measured, moments, runs, with_most
from twotowers.results.statistics import select

KEYS = ["setting", "method", "variant", "components", "metric"]
ORDER = {"method": ["naive", "dla"], "variant": ["plain", "intervention", "merging"]}
METRICS = {"mcc": "MCC", **{f"ndcg@{top}": f"nDCG@{top}" for top in (1, 3, 5, 10)}}
METHODS = {
    ("naive", "plain"): "no debias",
    ("dla", "plain"): "DLA",
    ("dla", "merging"): "merging",
    ("dla", "intervention"): "intervention",
}
LOOKS = {
    "synthetic": Look("#0072B2", "o", "one data set for all runs"),
    "redrawn": Look("#D55E00", "^", "another data set per run"),
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per study, method, variant, metric and statistic: mean, sd, and each run."""
    where = {
        "components": 2,
        "metric": list(METRICS),
        "method": ["naive", "dla"],
        "variant": ["plain", "merging", "intervention"],
    }
    ours = with_most(measured(results, list(LOOKS), **where), "clicks")
    theirs = select(published, setting="synthetic", **where)
    return pd.concat([moments(ours, theirs, KEYS, ORDER), runs(ours, KEYS)], ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    """A panel per metric: a dot per run and method, and the published mean and deviation."""
    with style():
        figure, axes = panels(len(METRICS), panel_height=2.5)
        for panel, (metric, title) in zip(axes.flat, METRICS.items(), strict=True):
            panel.set_title(title)
            for place, (method, variant) in enumerate(METHODS):
                cells = select(table, metric=metric, method=method, variant=variant)
                _column(panel, place, cells)
            panel.set_xticks(range(len(METHODS)), METHODS.values(), rotation=90)
            panel.grid(visible=False, axis="x")
        axes[0, 0].set_ylabel("Each run")
        shared_legend(figure)
    return figure


def _column(axes: Axes, place: int, cells: pd.DataFrame) -> None:
    for offset, (setting, look) in zip((-0.25, 0.15), LOOKS.items(), strict=True):
        each = select(cells, setting=setting, source="reproduced")
        each = each[each["statistic"].str.startswith("run ")]
        # Side by side, so that equal runs are seen to be several.
        at = place + offset + np.linspace(-0.07, 0.07, len(each))
        axes.plot(
            at, each["value"], look.marker, color=look.colour, markersize=2.6, alpha=0.75,
            markeredgewidth=0, label=look.label,
        )  # fmt: skip
    printed = select(cells, source="published").set_index("statistic")["value"]
    if len(printed):
        axes.errorbar(
            place - 0.05, printed["mean"], yerr=printed["sd"], color=GREY, marker="_",
            markersize=7, markeredgewidth=1.2, capsize=2, linestyle="none", elinewidth=0.9,
            label="published", zorder=1,
        )  # fmt: skip

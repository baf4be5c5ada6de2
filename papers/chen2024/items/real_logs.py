"""The identifiability check on a real click log, and on what random thinning leaves of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from papers.chen2024.looks import INTERVENTION
from twotowers.report.figures import PAGE_WIDTH, REPRODUCED, style
from twotowers.results.moments import measured, whole
from twotowers.results.statistics import over_seeds, select

KEYS = ["log", "metric", "position", "other", "share"]
SUMMARIES = {
    "pages": "pages",
    "rows": "rows",
    "documents": "pairs",
    "components": "components",
    "merges": "merges needed",
    "interventions": "swaps needed",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per log and summary, pair of positions, or share kept."""
    metrics = [*SUMMARIES, "linked_pairs", "connected_share"]
    found = measured(results, "real_logs", metric=metrics)
    return whole(over_seeds(found, KEYS), ["other"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """Two panels per log: linked pairs by position and position, connected share by share kept."""
    logs = list(table["log"].unique())
    with style():
        figure = Figure(figsize=(PAGE_WIDTH, 3.3 * len(logs)), layout="constrained")
        axes = figure.subplots(len(logs), 2, squeeze=False, width_ratios=(1.15, 1))
        for (left, right), log in zip(axes, logs, strict=True):
            cells = select(table, log=log)
            _links_panel(left, select(cells, metric="linked_pairs"))
            left.set_title(f"{log.capitalize()}: pairs seen at both positions")
            right.set_title("Thinned at random")
            _share_panel(right, select(cells, metric="connected_share"))
            _summary(right, cells)
    return figure


def _links_panel(axes: Axes, links: pd.DataFrame) -> None:
    last = int(links["other"].max())
    counts = np.full((last, last), np.nan)
    p, q = (links[column].to_numpy(int) - 1 for column in ("position", "other"))
    counts[q, p] = links["value"]
    top = max(np.nanmax(counts), 2)
    axes.imshow(np.where(counts > 0, counts, np.nan), cmap="Blues", norm=LogNorm(1, top))
    for row, column, number in zip(q, p, links["value"], strict=True):
        dark = number > top**0.6
        axes.text(
            column, row, f"{number:.0f}", ha="center", va="center", fontsize=6,
            color="white" if dark else "black",
        )  # fmt: skip
    axes.grid(visible=False)
    axes.set(xlim=(-0.5, last - 1.5), ylim=(last - 0.5, 0.5))
    axes.set_xticks(range(last - 1), range(1, last))
    axes.set_yticks(range(1, last), range(2, last + 1))
    axes.set(xlabel="Position (from 1)", ylabel="Position (from 1)")


def _share_panel(axes: Axes, kept: pd.DataFrame) -> None:
    kept = kept.sort_values("share")
    look = INTERVENTION
    axes.plot(
        kept["share"], kept["value"], color=look.colour, marker=look.marker,
        markeredgecolor="white", markeredgewidth=0.4, **REPRODUCED,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(kept["share"], [f"{100 * share:g}" for share in kept["share"]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(ylim=(-0.03, 1.03), xlabel="Pairs kept (%)", ylabel="Frequency of connection")


def _summary(axes: Axes, cells: pd.DataFrame) -> None:
    values = cells.set_index("metric")["value"]
    lines = [f"{name}: {values[metric]:,.0f}" for metric, name in SUMMARIES.items()]
    axes.text(0.97, 0.05, "\n".join(lines), transform=axes.transAxes, ha="right", fontsize=7)

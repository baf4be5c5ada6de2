"""Examination by position as DLA estimates it, with and without merging (Appendix D.1)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from papers.chen2024.contexts import EXAMINATION, POSITIONS
from papers.chen2024.looks import MERGING, POSITION, UNREPAIRED
from twotowers.report.figures import TRUTH, Look, panels, style
from twotowers.results.moments import measured, moments, runs, with_most
from twotowers.results.statistics import select

KEYS = ["components", "method", "variant", "clicks", "metric", "position"]
NUMBERS = (2, 3, 4)
ORDER = {"method": ["dla", "truth"], "variant": ["plain", "merging"]}
LOOKS = {"plain": UNREPAIRED, "merging": MERGING}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per K, variant, position and statistic: mean, sd, each run; and the truth."""
    where = {"method": "dla", "variant": list(LOOKS), "components": list(NUMBERS)}
    found = with_most(measured(results, "synthetic", **where, metric="examination"), "clicks")
    truth = found.drop_duplicates(["components", "position"]).assign(
        method="truth",
        variant="truth",
        value=lambda cells: (EXAMINATION / EXAMINATION[0])[cells["position"].astype(int) - 1],
    )
    ours = pd.concat([found, truth], ignore_index=True)
    return pd.concat(
        [moments(ours, published.iloc[:0], KEYS, ORDER), runs(found, KEYS)], ignore_index=True
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel per K: boxes over runs per position, and the truth."""
    with style():
        figure, axes = panels(len(NUMBERS), panel_height=2.5)
        for panel, number in zip(axes.flat, NUMBERS, strict=True):
            _examination_panel(panel, select(table, components=number))
            panel.set_title(f"K = {number}")
        axes[0, 0].set_ylabel("Examination relative to the first")
        handles = [
            Patch(facecolor=face(look), edgecolor=look.colour, label=look.label)
            for look in LOOKS.values()
        ]
        handles += axes[0, 0].get_legend_handles_labels()[0]
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def face(look: Look) -> tuple:
    """A box's inside, light enough for its median to be seen."""
    return to_rgba(look.colour, 0.3)


def _examination_panel(axes: Axes, cells: pd.DataFrame) -> None:
    places = np.arange(POSITIONS)
    for offset, (variant, look) in zip((-0.2, 0.2), LOOKS.items(), strict=True):
        each = select(cells, variant=variant)
        # An examination of 0 has no place on this axis.
        each = each[each["statistic"].str.startswith("run ") & (each["value"] > 0)]
        line = {"color": look.colour, "linewidth": 0.9}
        axes.boxplot(
            [select(each, position=place + 1)["value"] for place in places],
            positions=places + offset, widths=0.34, manage_ticks=False, patch_artist=True,
            boxprops={"facecolor": face(look), "edgecolor": look.colour, "linewidth": 0.9},
            medianprops=line | {"linewidth": 1.6}, whiskerprops=line, capprops=line,
            flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": look.colour},
        )  # fmt: skip
    truth = select(cells, method="truth", statistic="mean").sort_values("position")
    axes.plot(places, truth["value"], label="truth", **TRUTH)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(places)
    axes.set_xlabel(POSITION)

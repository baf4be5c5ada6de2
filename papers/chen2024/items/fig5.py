"""The identifiability graphs of the fully synthetic lists, for K = 1 to 4 (Appendix C.1).

To be seen: K groups of neighbouring positions; arcs, of which the thicker stand for more shared
documents, within a group and none between two. Takes a second.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from papers.chen2024.panels import COMPONENTS, rows
from twotowers.figures import CATEGORICAL, GREY, MARKERS, panels, style
from twotowers.statistics import over_seeds, select

KEYS = ["components", "metric", "position", "other"]
# Points per shared document: an arc of Figure 5 stands for about a hundred.
WIDTH = 0.016


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per K and pair of positions (documents shown at both), or position (component)."""
    where = {"metric": ["shared_documents", "component"], "components": list(COMPONENTS)}
    summary = over_seeds(rows(results, "graphs", method="graph", **where), KEYS)
    counts = dict.fromkeys(["components", "other"], "Int64")
    return summary.astype(counts).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """Four panels: positions on a line, an arc per pair that shares documents."""
    with style():
        figure, axes = panels(2, rows=2, panel_height=1.35)
        for panel, (number, look) in zip(axes.flat, COMPONENTS.items(), strict=True):
            _graph_panel(panel, select(table, components=number))
            panel.set_title(look.label)
        figure.supxlabel(
            "Numbers on nodes: positions, the first is 0, as printed. Numbers on arcs: documents "
            "shown at both.\nColour and marker: connected component.",
            fontsize=7.5,
        )
    return figure


def _graph_panel(axes: Axes, rows: pd.DataFrame) -> None:
    component = select(rows, metric="component").set_index("position")["value"].astype(int)
    order = {label: place for place, label in enumerate(dict.fromkeys(component.sort_index()))}
    edges = select(rows, metric="shared_documents").query("value > 0")
    for edge in edges.itertuples():
        _arc(axes, edge.position - 1, edge.other - 1, edge.value)
    for position, label in component.items():
        place = order[label]
        axes.plot(
            position - 1, 0, MARKERS[place % len(MARKERS)], markersize=13,
            color=CATEGORICAL[place % len(CATEGORICAL)], markeredgecolor="white", zorder=3,
        )  # fmt: skip
        axes.text(
            position - 1, -0.01, str(position - 1), color="white", ha="center", va="center",
            fontsize=7.5, weight="bold", zorder=4,
        )  # fmt: skip
    axes.set(xlim=(-0.6, 9.6), ylim=(-0.42, 1.42))
    axes.axis("off")


def _arc(axes: Axes, left: int, right: int, shared: float) -> None:
    height = 0.42 * (right - left)
    middle, top = (left + right) / 2, height + 0.06
    axes.add_patch(
        Arc(
            (middle, 0), right - left, 2 * height, theta1=0, theta2=180, color=GREY,
            linewidth=WIDTH * shared + 0.3, zorder=1,
        )
    )  # fmt: skip
    text = axes.text(middle, top, f"{shared:.0f}", ha="center", va="bottom", fontsize=6, zorder=2)
    text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.7})
    axes.set_ylim(top=max(axes.get_ylim()[1], np.ceil(top)))

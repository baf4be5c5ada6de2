"""The identifiability graphs of the fully synthetic lists (Appendix C.1)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from twotowers.claims.statistics import measured, over_seeds, select, whole
from twotowers.report.charts import CATEGORICAL
from twotowers.report.figures import GREY, page, style

KEYS = ["components", "metric", "position", "other"]
COMPONENTS = {1: "K = 1 (connected)", 2: "K = 2", 3: "K = 3", 4: "K = 4"}
# Points per shared document: an arc of Figure 5 stands for about a hundred.
WIDTH = 0.016
# Shapes that a number fits into.
SHAPES = ("o", "s", "h", "D", "8", "p")
NODE = {"markersize": 13, "markeredgecolor": "white", "zorder": 3}
NUMBER = {"color": "white", "ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 4}
NUMBER |= {"fontsize": 7.5}
LINE = {"color": GREY, "zorder": 1}
COUNT = {"textcoords": "offset points", "ha": "center", "va": "top", "fontsize": 6}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per K and pair of positions (documents shown at both), or position (component)."""
    where = {"metric": ["shared_documents", "component"], "components": list(COMPONENTS)}
    summary = over_seeds(measured(results, "graphs", **where), KEYS)
    return whole(summary, KEYS).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    with style():
        figure = page(3.45)
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        for panel, (number, title) in zip(axes.flat, COMPONENTS.items(), strict=True):
            _graph_panel(panel, select(table, components=number))
            panel.set_title(title)
            panel.axis("off")
        edges = select(table, metric="shared_documents").query("value > 0")
        top = height((edges["other"] - edges["position"]).max())
        axes[0, 0].set(xlim=(-0.6, 9.6), ylim=(-0.35, top + 0.1))
        figure.suptitle(
            "Nodes: positions (the first is 0, as printed), one colour and shape per connected "
            "component.\nArcs: documents shown at both positions.",
            fontsize=7.5,
        )
    return figure


def _graph_panel(axes: Axes, rows: pd.DataFrame) -> None:
    for edge in select(rows, metric="shared_documents").query("value > 0").itertuples():
        _arc(axes, edge.position - 1, edge.other - 1, edge.value)
    component = select(rows, metric="component").sort_values("position")
    order = {label: place for place, label in enumerate(component["value"].unique())}
    for node in component.itertuples():
        place, at = order[node.value] % len(SHAPES), node.position - 1
        axes.plot(at, 0, SHAPES[place], color=CATEGORICAL[place], **NODE)
        axes.annotate(f"{at}", (at, 0), **NUMBER)


def height(distance: int) -> float:
    """How high an arc is; the longer the higher, so that none hides another."""
    return 0.4 * distance**0.7


def _arc(axes: Axes, left: int, right: int, shared: float) -> None:
    middle, top = (left + right) / 2, height(right - left)
    width = max(WIDTH * shared, 0.4)
    axes.add_patch(Arc((middle, 0), right - left, 2 * top, theta2=180, linewidth=width, **LINE))
    axes.annotate(f"{shared:.0f}", (middle, top), (0, -2.5 - width / 2), **COUNT)

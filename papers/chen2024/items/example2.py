"""How often a random data set is identifiable, and Example 2's estimate of it (Appendix A.2).

The estimate is Gilbert's, for graphs whose edges are independent; those of an identifiability
graph are not.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import PAGE_WIDTH, Look, style
from twotowers.results.moments import measured, whole
from twotowers.results.statistics import over_seeds, select

SIZE = ["feature_vectors", "bias_factors", "rows"]
DOTS = {
    "simulated": Look("#0072B2", "o", "simulated"),
    "simulated_seen": Look("#009E73", "^", "simulated, drawn factors only"),
}
LINES = {
    "estimate": (Look("#D55E00", "", "Example 2"), "-"),
    "estimate_finite": (Look("#000000", "", "Example 2 before its limits"), (0, (2, 1.5))),
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per |X|, |T|, |D| and metric; the simulated frequency has a 95 % interval."""
    metrics = [*DOTS, *LINES, "standard_error"]
    found = measured(results, "example2", metric=metrics)
    summary = over_seeds(found, [*SIZE, "metric"])
    error = select(summary, metric="standard_error").set_index(SIZE)["value"]
    half = 1.96 * error.reindex(pd.MultiIndex.from_frame(summary[SIZE])).to_numpy()
    simulated = summary["metric"] == "simulated"
    summary["low"] = (summary["value"] - half).where(simulated)
    summary["high"] = (summary["value"] + half).where(simulated)
    return whole(summary, SIZE).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """A panel per |X| and |T|: frequency and estimates against |D|."""
    sizes = table[SIZE[:2]].drop_duplicates().sort_values(SIZE[:2]).to_numpy(int)
    with style():
        figure = Figure(figsize=(PAGE_WIDTH, 2.9), layout="constrained")
        axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        for panel, (vectors, factors) in zip(axes, sizes, strict=True):
            panel.set_title(f"|X| = {vectors:,}, |T| = {factors:,}")
            _size_panel(panel, select(table, feature_vectors=vectors, bias_factors=factors))
        axes[0].set_ylabel("Probability of identifiability")
        # An estimate of a probability that leaves [0, 1] leaves the panel.
        axes[0].set_ylim(-0.05, 1.05)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _size_panel(axes: Axes, cells: pd.DataFrame) -> None:
    for metric, (look, dashes) in LINES.items():
        line = select(cells, metric=metric).sort_values("rows")
        axes.plot(
            line["rows"], line["value"], color=look.colour, linestyle=dashes, linewidth=1.1,
            label=look.label,
        )  # fmt: skip
    for metric, look in DOTS.items():
        dots = select(cells, metric=metric).sort_values("rows")
        face = look.colour if metric == "simulated" else "none"
        axes.plot(
            dots["rows"], dots["value"], look.marker, color=look.colour, markerfacecolor=face,
            markersize=4, label=look.label, zorder=3,
        )  # fmt: skip
        axes.vlines(dots["rows"], dots["low"], dots["high"], color=look.colour, linewidth=0.9)
    axes.set_xlabel("Rows |D|")

"""Perplexity and conditional perplexity of ten models, by EM or counting and by gradient."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.clax2025.names import NINTH
from twotowers.models.names import MODELS
from twotowers.report.figures import style
from twotowers.results.statistics import compare, select

PANELS = {"mean_perplexity": "Perplexity", "mean_conditional_perplexity": "Conditional perplexity"}
LOOKS = {
    "gradient": ("#0072b2", "o", "gradient"),
    "em": ("#d55e00", "s", "EM or counting"),
    "counted": ("#009e73", "^", "simplified, counted"),
}
"""Colour, mark and name of each estimator."""


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, metric and source: mean and 95 % interval over divisions of the log."""
    kept = results["prior_mean"].isna() | (results["prior_mean"] - NINTH).abs().lt(1e-4)
    rows = results[kept].drop(columns="prior_mean")
    return compare(rows, published, ["setting", "metric"], metric=list(PANELS))


def draw(table: pd.DataFrame) -> Figure:
    """Two panels; a line per model, filled marks for ours and hollow ones for the published."""
    with style():
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        order = {name: -place for place, name in enumerate(MODELS)}
        for panel, (metric, title) in zip(panels, PANELS.items(), strict=True):
            rows = select(table, metric=metric)
            for prefix, (color, mark, name) in LOOKS.items():
                own = rows[rows["setting"].str.startswith(prefix)]
                own = own[~((own["setting"].str.endswith("-cm")) & (metric != "mean_perplexity"))]
                shift = {"gradient": 0.15, "em": -0.15, "counted": -0.35}[prefix]
                for source, part in own.groupby("source"):
                    height = part["setting"].str.split("-").str[1].map(order) + shift
                    ours = source == "reproduced"
                    face = color if ours else "none"
                    label = name if ours else None
                    panel.scatter(
                        part["value"],
                        height,
                        marker=mark,
                        s=22,
                        facecolors=face,
                        edgecolors=color,
                        linewidths=0.8,
                        label=label,
                    )
                    if ours:
                        panel.hlines(height, part["low"], part["high"], color=color, linewidth=0.8)
            panel.set_xlabel(title)
        panels[0].set_yticks(list(order.values()), [name.upper() for name in order])
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure

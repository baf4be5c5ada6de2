"""The identifiability check on a real click log, and on what random thinning leaves of it."""

import pandas as pd
import seaborn as sns
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure, SubFigure

from twotowers.claims.statistics import measured, over_seeds, select, whole
from twotowers.report.charts import Curves, ticks
from twotowers.report.figures import page, style

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
    metrics = [*SUMMARIES, "linked_pairs", "connected_share"]
    means = measured(results, "real_logs", metric=metrics)
    return whole(over_seeds(means, KEYS), ["other"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    logs = list(table["log"].unique())
    figure = page(3.3 * len(logs))
    parts = figure.subfigures(len(logs), 2, squeeze=False, width_ratios=(1.15, 1))
    for (left, right), log in zip(parts, logs, strict=True):
        cells = select(table, log=log)
        _links(left, log, select(cells, metric="linked_pairs"))
        _share(right, cells)
    return figure


def _links(figure: SubFigure, log: str, links: pd.DataFrame) -> None:
    counts = links.pivot(index="other", columns="position", values="value").astype(float)
    numbers = {"annot": True, "fmt": ".0f", "annot_kws": {"fontsize": 6}}
    how = {"norm": LogNorm(1), "cmap": "Blues", "cbar": False, "square": True, **numbers}
    with style():
        axes = sns.heatmap(counts.where(counts > 0), ax=figure.subplots(), **how)
        axes.set(xlabel="Position (from 1)", ylabel="Position (from 1)")
        axes.set_title(f"{log.capitalize()}: pairs seen at both positions")


def _share(figure: SubFigure, cells: pd.DataFrame) -> None:
    kept = select(cells, metric="connected_share")
    chart = Curves(kept, by={"metric": {"connected_share": "reproduced"}})
    plot = chart.plot("share").scale(x=ticks(kept["share"], log=True, percent=True))
    plot = plot.limit(y=(-0.03, 1.03)).label(x="Pairs kept (%)", y="Frequency of connection")
    chart.onto(figure, plot.label(title="Thinned at random"))
    values = cells.set_index("metric")["value"]
    lines = [f"{name}: {values[metric]:,.0f}" for metric, name in SUMMARIES.items()]
    axes = figure.axes[0]
    axes.text(0.97, 0.05, "\n".join(lines), transform=axes.transAxes, ha="right", fontsize=7)

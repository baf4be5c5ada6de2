"""Figure 2.4: documents without features, along budgets or along collisions."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2023.grid import METHODS
from twotowers.claims.statistics import compare
from twotowers.report.charts import Curves

LABELS = {
    "sessions": "Simulated queries",
    "collisions": "Share of documents with another's features",
}


def table(results: pd.DataFrame, published: pd.DataFrame, *, along: str) -> pd.DataFrame:
    """One row per method, place and source: mean and 95 % interval over seeds."""
    own = {"setting": "onehot", "metric": "ndcg@10", "method": list(METHODS)}
    other = {"sessions": {"collisions": 0}, "collisions": {"sessions": results["sessions"].max()}}
    keys = ["method", "sessions", "collisions", "metric"]
    return compare(results, published, keys, **own, **other[along])


def draw(table: pd.DataFrame, *, along: str) -> Figure:
    """One panel."""
    chart = Curves(table, by={"method": METHODS})
    plot = chart.plot(along).label(x=LABELS[along], y="nDCG@10")
    return chart.figure(plot.scale(x="log") if along == "sessions" else plot, height=2.4)

"""A metric against the number of simulated queries: a panel per data set, a curve per method."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2023.grid import DATASETS, METHODS, PRODUCTION, of_method
from twotowers.report.charts import Curves
from twotowers.results.statistics import over_seeds, select

KEYS = ["dataset", "method", "sessions", "metric"]


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str], metric: str
) -> pd.DataFrame:
    """One row per data set, method and budget: mean and 95 % interval over seeds."""
    parts = []
    for dataset in DATASETS:
        for method in (*METHODS, PRODUCTION):
            place = of_method(dataset, method, metric)
            if place["setting"] in needs:
                rows = select(results, **place)
                parts.append(rows.assign(dataset=dataset, method=method))
    return over_seeds(pd.concat(parts), KEYS).assign(source="reproduced")


def draw(table: pd.DataFrame, *, label: str) -> Figure:
    """Production is the dotted line."""
    production = table["method"] == PRODUCTION
    chart = Curves(
        table.assign(source=table["source"].where(~production, "truth")),
        by={"method": METHODS},
        col={"dataset": {name: DATASETS[name] for name in table["dataset"].unique()}},
        truth="Production",
    )
    plot = chart.plot("sessions").scale(x="log")
    return chart.figure(plot.label(x="Simulated queries", y=label).share(y=False), height=2.4)

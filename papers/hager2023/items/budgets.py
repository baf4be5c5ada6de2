"""A metric in [0, 1] against the number of simulated queries, by data set and method."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2023.grid import DATASETS, METHODS, PRODUCTION, of_method
from twotowers.claims.statistics import from_moments, over_seeds, select
from twotowers.report.charts import Curves

KEYS = ["dataset", "method", "sessions", "metric"]


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str], metric: str
) -> pd.DataFrame:
    """One row per data set, method, budget and source: mean and 95 % interval over seeds."""
    parts = {"reproduced": [], "published": []}
    for dataset in DATASETS:
        for method in (*METHODS, PRODUCTION):
            place = of_method(dataset, method, metric)
            if place["setting"] in needs:
                for source, rows in (("reproduced", results), ("published", published)):
                    own = select(rows, **place).assign(dataset=dataset, method=method)
                    parts[source].append(own)
    ours = over_seeds(pd.concat(parts["reproduced"]), KEYS)
    theirs = from_moments(pd.concat(parts["published"]), KEYS)
    tables = [ours.assign(source="reproduced"), theirs.assign(source="published")]
    return pd.concat(tables, ignore_index=True)


def draw(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw a panel per data set and a curve per method, with intervals cut at 0 and 1.

    Our production ranker is the dotted line; the authors' is in the csv alone.
    """
    table = table[(table["method"] != PRODUCTION) | (table["source"] == "reproduced")]
    table = table.assign(low=table["low"].clip(lower=0), high=table["high"].clip(upper=1))
    production = table["method"] == PRODUCTION
    chart = Curves(
        table.assign(source=table["source"].where(~production, "truth")),
        by={"method": METHODS},
        col={"dataset": {name: DATASETS[name] for name in table["dataset"].unique()}},
        truth="our production ranker",
    )
    plot = chart.plot("sessions").scale(x="log")
    return chart.figure(plot.label(x="Simulated queries", y=label).share(y=False), height=2.4)

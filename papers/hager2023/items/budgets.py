"""A metric in [0, 1] against the number of simulated queries, by data set and method."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2023.grid import DATASETS, METHODS, PRODUCTION, of_method
from twotowers.claims.statistics import compare, select
from twotowers.report.charts import PANELS, Curves, in_panels

KEYS = ["dataset", "method", "sessions", "metric"]


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str], metric: str
) -> pd.DataFrame:
    parts = {"reproduced": [], "published": []}
    for dataset in DATASETS:
        for method in (*METHODS, PRODUCTION):
            place = of_method(dataset, method, metric)
            if place["setting"] in needs:
                for source, rows in (("reproduced", results), ("published", published)):
                    own = select(rows, **place).assign(dataset=dataset, method=method)
                    parts[source].append(own)
    return compare(*map(pd.concat, parts.values()), KEYS)


def draw(table: pd.DataFrame, *, label: str) -> Figure:
    """Ours above the published on one axis: a panel per data set, a curve per method.

    Our intervals are cut at 0 and 1. The published have none here, and none of their budgets below
    ours, which would set the axis: the csv has them. Dotted: the production ranker of each.
    """
    table = in_panels(table)
    table = table.assign(low=table["low"].clip(lower=0), high=table["high"].clip(upper=1))
    first = select(table, panel="reproduced")["sessions"].min()
    table = table[table["sessions"] >= first]
    production = table["method"] == PRODUCTION
    places = ["dataset", "panel"]
    level = table[production].groupby(places, as_index=False)["value"].mean()
    level = table[[*places, "sessions"]].drop_duplicates().merge(level, on=places)
    drawn = set(table["dataset"])
    chart = Curves(
        pd.concat([table[~production], level.assign(source="truth")], ignore_index=True),
        by={"method": METHODS},
        col={"dataset": {name: title for name, title in DATASETS.items() if name in drawn}},
        row={"panel": PANELS},
        truth="production ranker",
    )
    plot = chart.plot("sessions").scale(x="log").share(y="col")
    return chart.figure(plot.label(x="Simulated queries", y=label), height=1.9)

"""Kendall's tau between the models' orders on compressed and on full tables, by ratio."""

import pandas as pd
from matplotlib.figure import Figure

from papers.clax2025.orders import COMPRESSIONS, METRICS, between_divisions, correlations
from twotowers.claims.published import runs
from twotowers.claims.statistics import over_seeds
from twotowers.report.charts import Curves, ticks


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per compression, ratio, metric and source; as "truth" what our divisions agree in."""
    keys = ["compression", "ratio", "metric"]
    ours, theirs = map(correlations, (results, runs("clax2025", "fig5.2")))
    rows = over_seeds(ours, keys).assign(source="reproduced")
    places = rows[["ratio", "metric"]].drop_duplicates()
    agreed = places["metric"].map(between_divisions(results))
    reference = places.assign(value=agreed, source="truth").dropna(subset="value")
    published = over_seeds(theirs, keys).assign(source="published")
    return pd.concat([rows, published, reference], ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    chart = Curves(
        table,
        by={"compression": COMPRESSIONS},
        col={"metric": METRICS},
        truth="two divisions of the log",
    )
    plot = chart.plot("ratio").scale(x=ticks(table["ratio"], log=True))
    return chart.figure(plot.label(x="Times smaller", y="Kendall's tau"))

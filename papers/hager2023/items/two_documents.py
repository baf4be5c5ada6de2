"""Figure 2.3: two documents that share an estimate."""

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import compare, select
from twotowers.report.charts import Curves

KINDS = {"pbm": "Click model", "ips": "Pointwise IPS"}
CURVES = {
    "relevant": "relevant, rarely examined",
    "irrelevant": "irrelevant, always examined",
    "both": "both, one estimate",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    keys = ["kind", "curve", "metric", "estimate"]
    where = {"setting": "theory", "metric": ["toy_loss", "toy_minimum"]}
    return compare(results, published, keys, **where)


def draw(table: pd.DataFrame) -> Figure:
    curves = select(table, metric="toy_loss")
    chart = Curves(curves, by={"curve": CURVES}, col={"kind": KINDS})
    plot = chart.plot("estimate").label(x="Estimated relevance", y="Expected loss")
    figure = chart.figure(plot)
    for panel, kind in zip(figure.axes, KINDS, strict=True):
        for row in select(table, metric="toy_minimum", kind=kind).itertuples():
            panel.axvline(row.value, color=chart.colours[CURVES[row.curve]], linewidth=0.7, ls=":")
    return figure

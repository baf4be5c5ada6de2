"""What another draw of the fully synthetic data set changes."""

import pandas as pd
import seaborn.objects as so
from matplotlib.figure import Figure

from twotowers.claims.statistics import measured, moments, runs, select, with_most
from twotowers.report.charts import Dots
from twotowers.report.drawings.sweep import spread
from twotowers.report.figures import GREY

KEYS = ["lists", "method", "repair", "components", "metric"]
ORDER = {"method": ["naive", "rate_dla"], "repair": ["plain", "intervention", "merging"]}
METRICS = {"mcc": "MCC", **{f"ndcg@{top}": f"nDCG@{top}" for top in (1, 3, 5, 10)}}
METHODS = {
    ("naive", "plain"): "no debias",
    ("rate_dla", "plain"): "DLA",
    ("rate_dla", "merging"): "merging",
    ("rate_dla", "intervention"): "intervention",
}
DRAWN = {"once": "one data set for all runs", "each": "another data set per run"}
SETTINGS = {"k2": "once", "k2-naive": "once", "redrawn": "each", "redrawn-naive": "each"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    where = {
        "components": 2,
        "metric": list(METRICS),
        "method": ["naive", "rate_dla"],
        "repair": ["plain", "merging", "intervention"],
    }
    ours = with_most(measured(results, list(SETTINGS), **where), "views")
    theirs = select(published, setting=["k2", "k2-naive"], **where)
    ours, theirs = (each.assign(lists=each["setting"].map(SETTINGS)) for each in (ours, theirs))
    return pd.concat([moments(ours, theirs, KEYS, ORDER), runs(ours, KEYS)], ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    lanes = pd.MultiIndex.from_frame(table[["method", "repair"]])
    names = pd.Series(lanes.map(METHODS), table.index)
    table = table.assign(name=pd.Categorical(names, list(METHODS.values())))
    each = table[table["statistic"].str.startswith("run ")]
    printed = spread(select(table, source="published"), ["lists", "name", "metric"])
    printed = printed.rename(columns={"value": "printed"}).assign(source="reproduced")
    rows = pd.concat([each.drop(columns=["low", "high"]), printed], ignore_index=True)
    chart = Dots(rows, {"lists": DRAWN}, {"metric": METRICS}, interval="published, ± 1 sd")
    dots = so.Dot(pointsize=2.6, alpha=0.75, edgewidth=0)
    plot = chart.bare(x="name", y="value")
    plot = plot.add(dots, so.Dodge(), so.Jitter(0.5, seed=0), legend=False)
    grey = {"y": "printed", "color": None, "marker": None, "legend": False}
    plot = plot.add(so.Range(color=GREY), ymin="low", ymax="high", **grey)
    plot = plot.add(so.Dash(color=GREY, width=0.3), **grey).label(x="", y="Each run")
    figure = chart.figure(plot, height=2.5)
    for panel in figure.axes:
        panel.tick_params(axis="x", labelrotation=90)
    return figure

"""What another draw of the fully synthetic data set changes."""

from __future__ import annotations

import pandas as pd
import seaborn.objects as so
from matplotlib.figure import Figure

from papers.chen2024.draws import as_runs
from twotowers.report.charts import Dots
from twotowers.report.drawings.sweep import spread
from twotowers.report.figures import GREY
from twotowers.results.moments import measured, moments, runs, with_most
from twotowers.results.statistics import select

KEYS = ["setting", "method", "variant", "components", "metric"]
ORDER = {"method": ["naive", "dla"], "variant": ["plain", "intervention", "merging"]}
METRICS = {"mcc": "MCC", **{f"ndcg@{top}": f"nDCG@{top}" for top in (1, 3, 5, 10)}}
METHODS = {
    ("naive", "plain"): "no debias",
    ("dla", "plain"): "DLA",
    ("dla", "merging"): "merging",
    ("dla", "intervention"): "intervention",
}
STUDIES = {"synthetic": "one data set for all runs", "redrawn": "another data set per run"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per study, method, variant, metric and statistic: mean, sd, and each run."""
    where = {
        "components": 2,
        "metric": list(METRICS),
        "method": ["naive", "dla"],
        "variant": ["plain", "merging", "intervention"],
    }
    ours = with_most(as_runs(measured(results, list(STUDIES), **where)), "clicks")
    theirs = select(published, setting="synthetic", **where)
    return pd.concat([moments(ours, theirs, KEYS, ORDER), runs(ours, KEYS)], ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    """A panel per metric: a dot per run and method, and the published mean and deviation."""
    lanes = pd.MultiIndex.from_frame(table[["method", "variant"]])
    names = pd.Series(lanes.map(METHODS), table.index)
    table = table.assign(name=pd.Categorical(names, list(METHODS.values())))
    each = table[table["statistic"].str.startswith("run ")]
    printed = spread(select(table, source="published"), ["setting", "name", "metric"])
    printed = printed.rename(columns={"value": "printed"}).assign(source="reproduced")
    rows = pd.concat([each.drop(columns=["low", "high"]), printed], ignore_index=True)
    chart = Dots(rows, {"setting": STUDIES}, {"metric": METRICS}, interval="published, ± 1 sd")
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

"""Figure 3.2: examination by position, relative to the first, by each estimator."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from papers.hager2024.names import ESTIMATORS
from twotowers.claims.statistics import compare, select
from twotowers.report.charts import PANELS, Curves, in_panels, ranks

HARVESTED, EM = "harvested", "regression_em"
SHOWN = 10


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    theirs = select(published, metric="propensity")
    theirs = theirs.assign(estimator=theirs["estimator"].fillna(EM))
    rows = compare(ratios(results), theirs, ["setting", "estimator", "position"])
    return rows.assign(metric="propensity")


def ratios(results: pd.DataFrame) -> pd.DataFrame:
    """Examination relative to position 1, from the logarithms that fits tell."""
    rows = select(results, metric="position_bias")
    return rows.assign(value=np.exp(rows["value"]), estimator=rows["estimator"].fillna(EM))


def draw(table: pd.DataFrame) -> Figure:
    rows = table[(table["position"] <= SHOWN) & table["value"].gt(0)]
    ours = rows[rows["source"] == "reproduced"]
    em = ours.loc[ours["estimator"] == EM, "setting"]
    if "ours-regression-em" in set(em):
        rows = rows[rows["setting"] != "baidu-regression-em"]
    rows = in_panels(rows)
    chart = Curves(rows, by={"estimator": ESTIMATORS}, col={"panel": PANELS})
    plot = chart.plot("position").label(y="Examination, relative to position 1")
    figure = chart.figure(ranks(plot, SHOWN).share(y=True))
    # A logarithmic scale of seaborn would draw the ends of bands at powers of ten of themselves.
    ends = rows[["value", "low"]]
    least = ends[ends > 0].min().min()
    for axes in figure.axes:
        axes.set_yscale("log")
        axes.set_ylim(0.8 * least, 1.25)
    return figure

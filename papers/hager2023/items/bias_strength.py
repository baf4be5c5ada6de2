"""Figure 2.5: nDCG@10 against the strength of known position bias."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import compare
from twotowers.report.charts import Curves, ticks

SETTINGS = {"eta-pbm": "PBM - True bias", "eta-ips": "IPS - True bias"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per method, eta and source: mean and 95 % interval over seeds."""
    own = {"setting": list(SETTINGS), "metric": "ndcg@10"}
    return compare(results, published, ["setting", "eta", "metric"], **own)


def draw(table: pd.DataFrame) -> Figure:
    """One panel."""
    chart = Curves(table, by={"setting": SETTINGS})
    plot = chart.plot("eta").scale(x=ticks(table["eta"]))
    return chart.figure(plot.label(x="Strength of position bias η", y="nDCG@10"), height=2.4)

"""Every query alike, or every impression: nDCG@10 of IPS and PBM against budgets."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves

SETTINGS = {
    "istella-few-pbm": "PBM, every query alike",
    "istella-few-ips": "IPS, every query alike",
    "raw-pbm": "PBM, every impression",
    "raw-ips": "IPS, every impression",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting and budget: mean and 95 % interval over seeds."""
    rows = select(results, setting=list(SETTINGS), metric="ndcg@10")
    return over_seeds(rows, ["setting", "sessions", "metric"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """One panel."""
    chart = Curves(table, by={"setting": SETTINGS})
    plot = chart.plot("sessions").scale(x="log").label(x="Simulated queries", y="nDCG@10")
    return chart.figure(plot, height=2.4)

"""Figure 2.1: expected loss of one document, a curve per examination probability."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves, symbols

KINDS = {"pbm": "Click model", "ips": "Pointwise IPS"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per loss, examination and estimate."""
    rows = select(results, setting="theory", metric="loss")
    return over_seeds(rows, ["kind", "examined", "estimate", "metric"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """A panel per loss."""
    chart = Curves(table, by={"examined": symbols("o", table["examined"])}, col={"kind": KINDS})
    plot = chart.plot("estimate").label(x="Estimated relevance", y="Expected loss")
    return chart.figure(plot)

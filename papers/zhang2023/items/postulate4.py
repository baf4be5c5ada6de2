"""What each tower alone explains while PAL is trained."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.zhang2023.winners import POLICIES
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves

TOWERS = {"observation": "observation tower", "relevance": "relevance tower", "both": "both"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, tower and step; and the steps to the share."""
    rows = select(results, setting="postulate4")
    keys = ["mixing_weight", "tower", "metric", "step"]
    return over_seeds(rows, keys).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    curves = select(table, metric="explained")
    drawn = {
        weight: name for weight, name in POLICIES.items() if name in ("Oracle", "L2", "Random")
    }
    chart = Curves(curves, by={"tower": TOWERS}, col={"mixing_weight": drawn})
    plot = chart.plot("step").scale(x="log").label(x="Steps", y="Share of the loss explained")
    # A tower that has not started is worse than the rates of all clicks, by any amount.
    return chart.figure(plot.limit(y=(-0.55, 1.05)))

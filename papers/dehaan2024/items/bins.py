"""Figure 1: annotated queries by the policy's nDCG@10, and how well each model ranks them."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from papers.dehaan2024.names import MODELS, by_query
from twotowers.claims.statistics import from_moments
from twotowers.report.charts import Curves

BINS = 10
FEW = 20
"""Bins of fewer queries are in the csv alone: they would set the axis."""
METRIC = "ndcg@10"
PANELS = {"ndcg@10": "nDCG@10", "gain": "less a random ranking"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model, bin and metric: the mean over queries and its 95 % interval.

    `bin` is the middle of a bin, and `n` its queries.
    """
    each = by_query(results, list(MODELS), METRIC)
    measured = []
    for metric, values in (("ndcg@10", each), ("gain", each.sub(each["random"], axis=0))):
        long = values.assign(bin=bins(each["policy"])).melt("bin", var_name="setting")
        moments = long.groupby(["setting", "bin"])["value"].agg(value="mean", sd="std", n="size")
        measured.append(
            from_moments(moments.reset_index(), ["setting", "bin"]).assign(metric=metric)
        )
    return pd.concat(measured, ignore_index=True).assign(source="reproduced")


def bins(policy: pd.Series) -> np.ndarray:
    """[queries] the middle of each query's bin: ten of equal width over the range of values."""
    cut = pd.cut(policy, BINS, labels=False)
    low, high = policy.min(), policy.max()
    return (low + (cut + 0.5) * (high - low) / BINS).round(4).to_numpy()


def draw(table: pd.DataFrame) -> Figure:
    """Two panels, a curve per model. Intervals end where nDCG and its differences do."""
    least = -(table["metric"] == "gain").astype(float)
    table = table[table["n"] >= min(FEW, table["n"].max())].drop(columns="n")
    table = table.assign(low=table["low"].clip(lower=least), high=table["high"].clip(upper=1))
    chart = Curves(table, by={"setting": MODELS}, col={"metric": PANELS})
    return chart.figure(chart.plot("bin").label(x="nDCG@10 of the policy", y="").share(y=False))

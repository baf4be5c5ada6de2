"""Perplexity and conditional perplexity of ten models, by EM or counting and by gradient."""

import pandas as pd
from matplotlib.figure import Figure

from papers.clax2025.orders import METRICS, NINTH
from twotowers.claims.statistics import compare
from twotowers.models.names import MODELS
from twotowers.report.drawings.dots import on_lines

ESTIMATORS = {"gradient": "gradient", "em": "EM or counting", "counted": "simplified, counted"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    kept = results["prior_mean"].isna() | (results["prior_mean"] - NINTH).abs().lt(1e-4)
    rows = results[kept].drop(columns="prior_mean")
    return compare(rows, published, ["setting", "metric"], metric=list(METRICS))


def draw(table: pd.DataFrame) -> Figure:
    """A panel per metric, a line per model, a dot per estimator. Two would squeeze the others."""
    named = table["setting"].str.split("-", expand=True)
    lines = {"model": {name: name.upper() for name in MODELS if name not in ("gctr", "cm")}}
    rows = table.assign(estimator=named[0], model=named[1])
    rows = rows[rows["model"].isin([*lines["model"]])]
    return on_lines(rows, lines, by={"estimator": ESTIMATORS}, metrics=METRICS)

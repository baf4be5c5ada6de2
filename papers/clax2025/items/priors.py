"""Perplexities under one or two priors, a row per setting."""

from __future__ import annotations

import pandas as pd

from twotowers.report.latex import booktabs
from twotowers.results.statistics import over_seeds, select

METRICS = ("mean_perplexity", "mean_conditional_perplexity")


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, prior and metric, of the divisions of the log that all settings have."""
    rows = select(results, metric=list(METRICS))
    seeds = set.intersection(*(set(own) for _, own in rows.groupby("setting")["seed"]))
    rows = rows[rows["seed"].isin(seeds)]
    return over_seeds(rows, ["setting", "prior_mean", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    """A row per setting: both metrics under each prior."""
    wide = table.pivot(index="setting", columns=["metric", "prior_mean"], values="value")
    priors = sorted(table["prior_mean"].unique())
    cells = [(metric, prior) for metric in METRICS for prior in priors]
    body = ([name, *map(_cell, values[cells])] for name, values in wide.iterrows())
    words = {"mean_perplexity": "perplexity", "mean_conditional_perplexity": "conditional"}
    heads = ["model", *(f"{words[metric]}, {prior:.2f}" for metric, prior in cells)]
    return booktabs(heads, body, columns="lrrrr")


def _cell(value: float) -> str:
    return "--" if pd.isna(value) else f"${value:.4f}$"

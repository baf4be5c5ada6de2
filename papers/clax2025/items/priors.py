"""Perplexities under two priors, a row per model."""

from __future__ import annotations

import pandas as pd

from twotowers.report.latex import booktabs
from twotowers.results.statistics import over_seeds, select

METRICS = ("mean_perplexity", "mean_conditional_perplexity")


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, prior and metric."""
    rows = select(results, metric=list(METRICS))
    return over_seeds(rows, ["setting", "prior_mean", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    """A row per model: both metrics under both priors."""
    wide = table.pivot(index="setting", columns=["metric", "prior_mean"], values="value")
    priors = sorted(table["prior_mean"].unique())
    cells = [(metric, prior) for metric in METRICS for prior in priors]
    body = [
        " & ".join([name, *(f"${values[cell]:.4f}$" for cell in cells)]) + r" \\"
        for name, values in wide.iterrows()
    ]
    words = {"mean_perplexity": "perplexity", "mean_conditional_perplexity": "conditional"}
    heads = ["model", *(f"{words[metric]}, {prior:.2f}" for metric, prior in cells)]
    return booktabs(heads, body, columns="lrrrr")

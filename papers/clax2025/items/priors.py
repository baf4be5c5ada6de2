"""Perplexities under one or two priors, a row per setting."""

import pandas as pd

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

METRICS = ("mean_perplexity", "mean_conditional_perplexity")
ESTIMATORS = {"em": "EM", "counted": "counting", "rounds": "50 rounds of EM"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, prior and metric, of the divisions of the log that all settings have."""
    rows = select(results, metric=list(METRICS))
    seeds = set.intersection(*(set(own) for _, own in rows.groupby("setting")["seed"]))
    rows = rows[rows["seed"].isin(seeds)]
    return over_seeds(rows, ["setting", "prior_mean", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    wide = table.pivot(index="setting", columns=["metric", "prior_mean"], values="value")
    priors = sorted(table["prior_mean"].unique())
    cells = [(metric, prior) for metric in METRICS for prior in priors]
    body = []
    for name, values in wide.iterrows():
        estimator, model = name.split("-")
        texts = ("--" if pd.isna(value) else f"${value:.4f}$" for value in values[cells])
        body.append([model.upper(), ESTIMATORS[estimator], *texts])
    words = {"mean_perplexity": "perplexity", "mean_conditional_perplexity": "conditional"}
    priors = (f"{words[metric]}, prior 1/{1 / prior:.0f}" for metric, prior in cells)
    return booktabs(["model", "by", *priors], sorted(body), columns="llrrrr")

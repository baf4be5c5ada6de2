"""Names of models, and their orders by how well they predict, on full and compressed tables."""

from itertools import combinations

import pandas as pd
from scipy.stats import kendalltau

from twotowers.claims.claims import NotTestable
from twotowers.claims.statistics import select
from twotowers.models.names import MODELS

HIDDEN = ("pbm", "ubm", "dcm", "ccm", "dbn", "sdbn")
"""Models that EM fits."""

NINTH = 0.111111
"""The mean of the prior of the thesis's baseline."""

CALLED = {name: name.upper() for name in (*MODELS, "mixture")}
"""What models are called in texts."""

METRICS = {"mean_perplexity": "Perplexity", "mean_conditional_perplexity": "Conditional perplexity"}
COMPRESSIONS = {"hashed": "hashing", "quotient": "quotient and remainder"}
"""From the first part of a setting's name to how its tables are compressed."""
WITHOUT_TABLE = ("gctr", "rctr")
"""Models that have nothing to compress."""


def fits(results: pd.DataFrame) -> pd.DataFrame:
    """Gradient fits: columns compression ("full", or a key of COMPRESSIONS), model, ratio, metric,
    seed and value. Full tables have no ratio."""
    named = results["setting"].str.split("-", n=1)
    first, model = named.str[0], named.str[1]
    rows = results.assign(compression=first.replace("gradient", "full"), model=model)
    rows = select(rows, compression=["full", *COMPRESSIONS], metric=list(METRICS))
    ratio = rows["tower_ratio"] if "tower_ratio" in rows else float("nan")
    columns = ["compression", "model", "ratio", "metric", "seed", "value"]
    return rows.assign(ratio=ratio)[columns]


def correlations(results: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau between the orders on compressed and on full tables, of the same seed.

    Returns:
        columns compression, ratio, metric, seed and value.
    """
    wide, rows = _wide(results), []
    on_full = wide.index.get_level_values("compression") == "full"
    full = wide[on_full].droplevel(["compression", "ratio"])
    for (metric, seed, compression, ratio), own in wide[~on_full].iterrows():
        whole = full.reindex([(metric, seed)]).squeeze()
        # What has no table is as it was.
        own = own.mask(own.index.isin(WITHOUT_TABLE), whole)
        rows.append((compression, ratio, metric, seed, _tau(own, whole)))
    if not rows:
        raise NotTestable("no compressed tables")
    return pd.DataFrame(rows, columns=["compression", "ratio", "metric", "seed", "value"])


def between_divisions(results: pd.DataFrame) -> pd.Series:
    """Mean tau, by metric, between the orders on full tables of two divisions of the log."""
    full = _wide(results[results["setting"].str.startswith("gradient-")])
    taus = {
        metric: pd.Series([_tau(*pair) for pair in combinations(own.to_numpy(), 2)], dtype=float)
        for metric, own in full.groupby("metric")
    }
    return pd.DataFrame(taus).mean()


def _wide(results: pd.DataFrame) -> pd.DataFrame:
    """The values of `fits`: a row per metric, seed, compression and ratio, a column per model."""
    keys = ["metric", "seed", "compression", "ratio"]
    rows = fits(results).fillna({"ratio": 1})
    return rows.pivot(index=keys, columns="model", values="value").reindex(columns=[*MODELS])


def _tau(one, other) -> float:
    """NaN if a model is missing."""
    return float(kendalltau(one, other).statistic)

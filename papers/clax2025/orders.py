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
    measured, rows = fits(results), []
    for (metric, seed), each in measured.groupby(["metric", "seed"]):
        full = _values(each[each["compression"] == "full"])
        compressed = each[each["compression"] != "full"]
        for (compression, ratio), own in compressed.groupby(["compression", "ratio"]):
            # What has no table is as it was.
            values = pd.concat([full[list(WITHOUT_TABLE)], _values(own, without=WITHOUT_TABLE)])
            rows.append((compression, ratio, metric, seed, _tau(values, full)))
    if not rows:
        raise NotTestable("no compressed tables")
    return pd.DataFrame(rows, columns=["compression", "ratio", "metric", "seed", "value"])


def between_divisions(results: pd.DataFrame) -> pd.Series:
    """Mean tau, by metric, between the orders on full tables of two divisions of the log."""
    measured = fits(results).query("compression == 'full'")
    taus = {}
    for metric, each in measured.groupby("metric"):
        orders = [_values(own) for _, own in each.groupby("seed")]
        pairs = [_tau(one, other) for one, other in combinations(orders, 2)]
        taus[metric] = pd.Series(pairs, dtype=float).mean()
    return pd.Series(taus)


def _values(rows: pd.DataFrame, without: tuple[str, ...] = ()) -> pd.Series:
    """A value per model, in the order of MODELS."""
    wanted = [name for name in MODELS if name not in without]
    values = rows.set_index("model")["value"]
    if lacking := [name for name in wanted if name not in values.index]:
        raise NotTestable(f"no results for {', '.join(lacking)}")
    return values[wanted]


def _tau(one: pd.Series, other: pd.Series) -> float:
    return float(kendalltau(one.to_numpy(), other[one.index].to_numpy()).statistic)

"""Models of the paper, and the values of each query that they have."""

from collections.abc import Sequence

import pandas as pd

from twotowers.claims.statistics import select

FOLDS = {"expert": "published", "expert-folds": "held out"}
"""The expert as published, and with trees that have not seen what they rank."""
MODELS = {
    "random": "Random",
    "expert": "Expert",
    "naive": "Naive",
    "two-tower": "Two-tower",
    "dropout": "Two-tower, dropout",
    "backdoor": "Two-tower, backdoor",
    "policy": "Logging policy",
}


def named(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a setting for each of the two experts."""
    if "folds" not in results:
        return results
    held_out = results["folds"] == FOLDS["expert-folds"]
    return results.assign(setting=results["setting"].mask(held_out, "expert-folds"))


def by_query(results: pd.DataFrame, settings: Sequence[str], metric: str) -> pd.DataFrame:
    """[queries, settings] the value of each annotated query, a mean over runs."""
    rows = select(named(results), metric=f"query_{metric}")
    rows = rows[rows["setting"].isin(settings)]
    if rows.empty:
        return pd.DataFrame()
    table = rows.pivot_table(index="query", columns="setting", values="value")
    return table[[name for name in settings if name in table]]

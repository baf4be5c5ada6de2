"""Means of settings, and what methods gain on their naive models."""

import pandas as pd

from papers.hager2024.names import GROUPS
from twotowers.claims.claims import seed_means

SETS = ("baidu", "ours", "ltr")
DEBIASED = {name: group[0] for group in GROUPS for name in group[1:]}
"""Each method's naive model."""
NAIVE = [group[0] for group in GROUPS]


def means(results: pd.DataFrame, settings, metric: str = "dcg@10") -> pd.Series:
    return seed_means(results, {"setting": list(settings)}, metric=metric)


def cells(results: pd.DataFrame, methods, sets=SETS, metric: str = "dcg@10") -> pd.DataFrame:
    names = [f"{of}-{method}" for method in methods for of in sets]
    values = means(results, names, metric).to_numpy()
    methods = pd.Index(list(methods), name="method")
    return pd.DataFrame(
        values.reshape(len(methods), len(sets)), methods, pd.Index(list(sets), name="features")
    )


def effects(results: pd.DataFrame, methods, sets=SETS, metric: str = "dcg@10") -> pd.DataFrame:
    """[methods, sets] what each method gains on its naive model."""
    own = cells(results, methods, sets, metric)
    return own - cells(results, [DEBIASED[name] for name in methods], sets, metric).to_numpy()

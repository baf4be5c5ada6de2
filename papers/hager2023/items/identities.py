"""The largest difference between both sides of each identity."""

from __future__ import annotations

import pandas as pd

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

NAMES = {
    "proposition_1": "Proposition 1",
    "proposition_2": "Proposition 2",
    "ignored_minimum": "Proposition 2, minimum at relevance times examination",
    "theorem_1": "Theorem 1",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per identity."""
    rows = select(results, setting="theory", metric=list(NAMES))
    return over_seeds(rows, ["setting", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    """A booktabs table."""
    rows = ([NAMES[row.metric], f"{row.value:.1e}"] for row in table.itertuples())
    heads = ["Identity", "largest difference"]
    return booktabs(heads, rows, columns="lr")

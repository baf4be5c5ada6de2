"""The data sets after preparation: queries, documents, features, levels of relevance.

To be seen: the printed counts, on the real data sets and with the paper's preparation; stand-ins
have their own. Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.tables import statistics_table, statistics_tex

METRICS = {
    "queries": r"\# Queries",
    "documents": r"\# Documents",
    "features": r"\# Features",
    "relevance_levels": r"\# Relevance levels",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, metric and source."""
    return statistics_table(results, published, METRICS)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table: a row per count, per data set ours and (grey) the paper's."""
    return statistics_tex(table, METRICS)

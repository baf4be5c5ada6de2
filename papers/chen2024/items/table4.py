"""The identifiability graphs of Yahoo! and Istella-S with 5,000 context types.

To be seen: tens of thousands of components, most of a single node; on Yahoo! one of them holds a
third of all nodes and nearly all edges. Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.tables import statistics_table, statistics_tex

METRICS = {
    "nodes": r"\# Nodes",
    "edges": r"\# Edges",
    "components": r"\# Connected components (CC)",
    "top1": r"\# Nodes in the top 1 CC",
    "top2": r"\# Nodes in the top 2 CC",
    "top3": r"\# Nodes in the top 3 CC",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, metric and source."""
    return statistics_table(results, published, METRICS)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table: a row per count, per data set ours and (grey) the paper's."""
    return statistics_tex(table, METRICS)

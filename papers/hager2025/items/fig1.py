"""Ranking performance of two-tower models against the strength of an expert policy.

The policy sorts by the annotated labels, mixed with noise by strength alpha, and shuffles a
session with probability tau.

To be seen: at tau 0, nDCG@10 is highest for a random policy (alpha 0) and falls by about .01 or
more towards both ends, strong and inverse alike; the fall flattens as tau grows, and at tau 1
strength has no effect. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import draw_ndcg_by_strength, ndcg_table


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per strength, temperature and source: mean nDCG@10 and 95 % interval."""
    return ndcg_table(results, published, ["example-expert"])


def draw(table: pd.DataFrame) -> Figure:
    """Two panels: reproduced and published."""
    return draw_ndcg_by_strength(table)

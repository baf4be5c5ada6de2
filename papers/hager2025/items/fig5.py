"""Ranking performance of two-tower models against the strength of a learned policy.

As fig1, but the policy sorts by a deep ranker that sees the features that the model sees.

To be seen: almost flat curves. Without a policy that knows more than the model can express,
neither strength nor temperature moves nDCG@10 by more than the noise of a few seeds. Takes a
second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import draw_ndcg_by_strength, ndcg_table


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per strength, temperature and source: mean nDCG@10 and 95 % interval."""
    return ndcg_table(results, published, ["example-deep"])


def draw(table: pd.DataFrame) -> Figure:
    """Two panels: reproduced and published."""
    return draw_ndcg_by_strength(table)

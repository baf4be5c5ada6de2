"""Contextual clicks on Yahoo! and Istella-S, 5,000 context types, examination starting at 1.

To be seen: with node merging DLA ranks better than without, and better than without debiasing,
in training and in test. The printed gains in nDCG are of .002 to .012. Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.tables import context_table, context_tex

STARTS = ("none", "ones")


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, method, variant, metric, statistic and source."""
    return context_table(results, published, STARTS)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table: two lines per method, reproduced and (grey) published."""
    return context_tex(table, STARTS, digits=1)

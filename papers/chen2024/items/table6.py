"""Table 2 again, with two ways to start the observation model: at 1 (I), or at random (R).

To be seen: without merging a random start costs MCC and nDCG in training; with merging it does
not, or less. Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.tables import context_table, context_tex

STARTS = ("none", "ones", "random")


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, method, variant, start, metric, statistic and source."""
    return context_table(results, published, STARTS)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table: two lines per method and start, reproduced and (grey) published."""
    return context_tex(table, STARTS, digits=2)

"""Position bias under misspecification on the inverse policy (alpha -1); compare with fig3.

To be seen: the mirror image of fig3. The policy puts the most relevant documents last, and the
estimates lie above the truth, -ln k, the further the less random the rankings (tau 0 highest).
Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import MISFIT, bias_table, draw_bias


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, temperature, position and source: mean bias and 95 % interval."""
    return bias_table(results, published, MISFIT, strength=-1)


def draw(table: pd.DataFrame) -> Figure:
    """Three panels, one per misspecification."""
    return draw_bias(table, MISFIT)

"""Position bias under misspecification on the strongest policy (alpha 1).

Left: a linear tower on non-linear relevance. Middle: a tower that lacks 36 of the 136 features
that the policy sees. Right: a policy that sorts by the annotated labels themselves.

To be seen: curves fan out below the truth, -ln k, the further the less random the rankings
(tau 0 lowest). Even on fully random rankings (tau 1) the estimate is off, slightly above the
truth: the misfit's own bias, without the policy's. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import MISFIT, bias_table, draw_bias


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, temperature, position and source: mean bias and 95 % interval."""
    return bias_table(results, published, MISFIT, strength=1)


def draw(table: pd.DataFrame) -> Figure:
    """Three panels, one per misspecification."""
    return draw_bias(table, MISFIT)

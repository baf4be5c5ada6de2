"""Position bias under misspecification with propensity weighting (alpha 1); compare with fig3.

To be seen: for every tau above 0 the curves fall together, close to the truth, -ln k, but a
little above it, as the misfit remains. At tau 0 every document has a single position and
weighting has nothing to work with: the curve is that of fig3. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import MISFIT, bias_table, draw_bias


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, temperature, position and source: mean bias and 95 % interval."""
    return bias_table(results, published, MISFIT, strength=1, weighting="ips")


def draw(table: pd.DataFrame) -> Figure:
    """Three panels, one per misspecification."""
    return draw_bias(table, MISFIT)

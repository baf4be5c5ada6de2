"""Position bias of well-specified models on the strongest policy (alpha 1).

Left and middle: a linear and a deep relevance tower on relevance of their own kind. Right: one
relevance parameter per query-document pair.

To be seen: with features every curve lies on the truth, -ln k, even on deterministic rankings
(tau 0). Without features tau 0 is far off with wide bands, as no document is ever swapped; from
tau .333 on, swaps identify the model. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import FIT, bias_table, draw_bias


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, temperature, position and source: mean bias and 95 % interval."""
    return bias_table(results, published, FIT, strength=1)


def draw(table: pd.DataFrame) -> Figure:
    """Three panels: linear, deep and embedding tower."""
    return draw_bias(table, FIT)

"""DLA against the number of clicks, for graphs of K = 1 to 4 components (Section 5.1).

To be seen: with a connected graph the clicks bring MCC and nDCG to 1; with any other, runs end
anywhere, however many the clicks, and K = 2, 3 and 4 hardly differ. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import COMPONENTS, MEASURES, draw_sweep, moments, rows
from twotowers.results.statistics import select

KEYS = ["components", "metric", "clicks"]


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per K, number of clicks, metric and statistic; published is K = 2 in Table 1."""
    where = {"method": "dla", "variant": "plain", "metric": list(MEASURES)}
    ours = rows(results, "synthetic", **where, components=list(COMPONENTS))
    return moments(ours, select(published, setting="synthetic", **where), KEYS)


def draw(table: pd.DataFrame) -> Figure:
    """Two panels, MCC and nDCG@5, a curve per K."""
    return draw_sweep(
        table, x="clicks", group="components", looks=COMPONENTS, xlabel="Clicks per place N"
    )

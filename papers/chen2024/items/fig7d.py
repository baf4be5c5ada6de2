"""Number of features against identifiability, Istella-S, 50 context types (Appendix D.3).

To be seen: few features connect the graph, as documents that differ elsewhere become one; 5 to 10
are enough to disconnect it, by the text. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import connection_table, draw_connection


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per number of features left: how often the graph is connected."""
    return connection_table(results, published, dataset="istella_s", sweep="features")


def draw(table: pd.DataFrame) -> Figure:
    """One panel: the frequency of a connected graph."""
    return draw_connection(table, xlabel="Features left")

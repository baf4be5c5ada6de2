"""Context types against identifiability, Istella-S (Section 5.2).

To be seen: connected with positions alone, and ever more rarely with more context types; the
text calls 20 of them enough to disconnect the graph. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import connection_table, draw_connection


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per number of context types: how often the graph is connected."""
    return connection_table(results, published, dataset="istella_s", sweep="contexts")


def draw(table: pd.DataFrame) -> Figure:
    """One panel: the frequency of a connected graph."""
    return draw_connection(table, xlabel="Context types (0: positions only)")

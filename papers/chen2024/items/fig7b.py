"""Size of the sample against identifiability, Istella-S, positions alone (Appendix D.3).

To be seen: samples of more than about 50 % are always connected, by the text. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import connection_table, draw_connection


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per share of the data set: how often its graph is connected."""
    return connection_table(results, published, dataset="istella_s", sweep="sampling")


def draw(table: pd.DataFrame) -> Figure:
    """One panel: the frequency of a connected graph."""
    return draw_connection(table, xlabel="Share of queries sampled")

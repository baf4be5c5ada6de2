"""DLA and its two repairs against the number of components K (Section 5.1).

To be seen: DLA falls with K; node merging falls later and less, most at K = 4, where it must
merge positions of different examination; node intervention does not fall. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import (
    INTERVENTION,
    MEASURES,
    MERGING,
    UNREPAIRED,
    draw_sweep,
    moments,
    most_clicks,
    rows,
)
from twotowers.results.statistics import select

KEYS = ["method", "variant", "components", "clicks", "metric"]
LOOKS = {"plain": UNREPAIRED, "intervention": INTERVENTION, "merging": MERGING}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, K, metric and statistic; published is K = 2 in Table 1."""
    where = {"method": "dla", "variant": list(LOOKS), "metric": list(MEASURES)}
    ours = most_clicks(rows(results, "synthetic", **where))
    return moments(ours, select(published, setting="synthetic", **where), KEYS)


def draw(table: pd.DataFrame) -> Figure:
    """Two panels, MCC and nDCG@5, a curve per variant."""
    return draw_sweep(
        table, x="components", group="variant", looks=LOOKS, xlabel="Connected components K"
    )

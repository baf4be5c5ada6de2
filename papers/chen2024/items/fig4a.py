"""Which swap: the one of least cost, or a random one (Section 5.1, K = 2, DLA).

To be seen: the swap of least variance (Proposition 1) brings MCC and nDCG to 1 with few clicks
and in every run; a random one needs many more, and still beats no swap. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import (
    INTERVENTION,
    MEASURES,
    UNREPAIRED,
    Look,
    draw_sweep,
    moments,
    rows,
)
from twotowers.results.statistics import select

KEYS = ["method", "variant", "components", "metric", "clicks"]
LOOKS = {
    "intervention": Look(INTERVENTION.colour, INTERVENTION.marker, "min cost"),
    "random intervention": Look("#D55E00", "s", "random cost"),
    "plain": UNREPAIRED,
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, number of clicks, metric and statistic; published is Table 1's."""
    where = {
        "method": "dla", "components": 2, "variant": list(LOOKS), "metric": list(MEASURES),
    }  # fmt: skip
    ours = rows(results, "synthetic", **where)
    return moments(ours, select(published, setting="synthetic", **where), KEYS)


def draw(table: pd.DataFrame) -> Figure:
    """Two panels, MCC and nDCG@5, a curve per way to choose."""
    return draw_sweep(table, x="clicks", group="variant", looks=LOOKS, xlabel="Clicks per place N")

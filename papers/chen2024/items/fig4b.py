"""Which merge: positions 1, 2 or 3 with 4 (Section 5.1, K = 2, DLA; positions from 0).

To be seen: the closer the merged positions, the closer to 1; all beat no merge, which no number
of clicks repairs. Takes a second.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from papers.chen2024.panels import MEASURES, UNREPAIRED, Look, draw_sweep, moments, rows
from twotowers.results.statistics import select

KEYS = ["method", "variant", "components", "metric", "clicks"]
LOOKS = {
    "merge 3&4": Look("#0072B2", "o", "3 & 4"),
    "merge 2&4": Look("#009E73", "^", "2 & 4"),
    "merge 1&4": Look("#D55E00", "s", "1 & 4"),
    "plain": UNREPAIRED,
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, number of clicks, metric and statistic; published is Table 1's."""
    where = {"method": "dla", "components": 2, "metric": list(MEASURES)}
    ours = rows(results, "synthetic", **where, variant=list(LOOKS))
    theirs = select(published, setting="synthetic", **where, variant=["plain", "merging"])
    # "3 & 4 is the proposed node merging strategy" (Section 5.1): Table 1's merging.
    theirs = theirs.assign(variant=theirs["variant"].replace("merging", "merge 3&4"))
    return moments(ours, theirs, KEYS)


def draw(table: pd.DataFrame) -> Figure:
    """Two panels, MCC and nDCG@5, a curve per merge."""
    return draw_sweep(table, x="clicks", group="variant", looks=LOOKS, xlabel="Clicks per place N")

"""Ranking performance under misspecification against temperature, one curve per strength.

Same three settings as fig3 and fig6, unweighted. A seed also draws the synthetic relevance of
the first two settings, and with it the level of nDCG@10 (standard deviation .07), but hardly the
differences between lanes: the bands are those of the differences, each seed's level taken out.
The published level varies as much; its differences were not published, so it has no band.

To be seen: with a policy that sorts (alpha 1 and -1), nDCG@10 is lowest at tau 0, and in the
first two settings stays well below the 1 that is possible. But there it hardly moves between tau
.333 and 1, where the bias of fig3 and fig6 still changes a lot, and alpha 1 and -1 rank alike
where their biases differ by far: ranking performance does not always follow bias. Takes a second.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.panels import MISFIT, draw_ndcg_by_temperature, ndcg_table
from twotowers.results.statistics import select, without_levels


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, strength, temperature and source: mean nDCG@10, and interval of ours."""
    ours = select(results, setting=list(MISFIT), metric="ndcg@10", weighting="none")
    levelled = without_levels(ours, ["setting"])
    return ndcg_table(levelled, published.assign(sd=np.nan), list(MISFIT))


def draw(table: pd.DataFrame) -> Figure:
    """Two rows of three panels: reproduced above published, one column per misspecification."""
    return draw_ndcg_by_temperature(table, MISFIT)

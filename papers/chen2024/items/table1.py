"""Every method on the fully synthetic lists of two components, N = 1,000,000 clicks.

To be seen: all methods fit the clicks, but unless the graph is connected they rank badly, each
differently and differently in every run; a swap or a merge repairs all three. Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.panels import METHODS, moments, most_clicks, rows
from papers.chen2024.tables import moments_tex
from twotowers.results.statistics import select

KEYS = ["setting", "method", "variant", "components", "clicks", "metric"]
METRICS = {
    "mcc": "MCC",
    **{f"ndcg@{top}": f"nDCG@{top}" for top in (1, 3, 5, 10)},
    "click_mse": "Click MSE",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per method, variant, metric, statistic and source."""
    where = {
        "method": list(dict.fromkeys(method for method, _ in METHODS)),
        "variant": ["plain", "intervention", "merging"],
        "components": 2,
        "metric": list(METRICS),
    }
    ours = most_clicks(rows(results, "synthetic", **where))
    return moments(ours, select(published, setting="synthetic", **where), KEYS)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table: two lines per method, reproduced and (grey) published."""
    return moments_tex(
        table,
        lines=METHODS,
        index=["method", "variant"],
        metrics=METRICS,
        rules=[("dla", "plain"), ("regression_em", "plain"), ("two_tower", "plain")],
    )

"""Section 4 by numbers: a row per support."""

import pandas as pd

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

COLUMNS = {
    ("theorem2", "dimension"): "free directions",
    ("theorem2", "share_worse"): "share that ranks worse",
    ("lemma7", "excess_loss"): "loss, dropout",
    ("proposition9, click", "excess_loss"): "loss, reversal on clicks",
    ("proposition9, click", "order_kept"): "order kept",
    ("proposition9, relevance", "excess_loss"): "loss, reversal on relevance",
    ("proposition9, relevance", "order_kept"): "order kept",
}
SUPPORTS = ("all cells", "connected", "two blocks", "oracle", "two documents", "one line")
MEASURED = ["dimension", "share_worse", "ndcg", "excess_loss", "examination_share_least",
            "examination_share_most", "order_kept", "c_over_p", "spread", "c_over_p_printed",
            "ends_at_truth", "ends_at_swapped", "starts", "least_curvature"]  # fmt: skip


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = select(results, setting="theory", metric=MEASURED)
    measured = over_seeds(rows, ["part", "support", "at", "metric"])
    return measured.assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    """A booktabs table of the worst rate or scale of each support."""
    of = table.groupby(["part", "metric", "support"])["value"]
    # The larger, the worse, but for an order that is kept.
    worst = of.min().where(of.max().index.get_level_values("metric") == "order_kept", of.max())
    body = [
        [support, *(_number(worst.get((*column, support)), column[1]) for column in COLUMNS)]
        for support in SUPPORTS
    ]
    heads = ["support", *COLUMNS.values()]
    return booktabs(heads, body, columns="l" + "r" * len(COLUMNS))


def _number(value: float | None, metric: str) -> str:
    if value is None:
        return "--"
    if metric == "order_kept":
        return "yes" if value == 1 else "no"
    return f"{value:.3g}" if value == 0 or value > 1e-4 else f"{value:.0e}"

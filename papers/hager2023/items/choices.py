"""Learning rates by each rule of choice in the authors' grid, and nDCG@10 at them."""

import pandas as pd

from papers.hager2023.grid import DATASETS, METHODS, RULES
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = select(results, setting="theory", rule=list(RULES), metric=["rate", "ndcg@10"])
    keys = ["dataset", "method", "rule", "metric", "kind"]
    return over_seeds(rows, keys).assign(source="published")


def tex(table: pd.DataFrame) -> str:
    body = []
    for (dataset, method), rows in table.groupby(["dataset", "method"], sort=False):
        cells = [DATASETS[dataset], METHODS[method]]
        for rule in RULES:
            rate, level = (select(rows, rule=rule, metric=m).iloc[0] for m in ("rate", "ndcg@10"))
            cells.append(f"{rate['kind'].capitalize()} {rate['value']:g} ({level['value']:.3f})")
        body.append(cells)
    heads = ["Data set", "Model", "chosen", "mean over epochs", "lowest loss"]
    return booktabs(heads, body, columns="llrrr")

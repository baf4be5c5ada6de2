"""Both remedies together beside each alone, under Oracle."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from papers.zhang2023.winners import on_common_grid, won
from twotowers.report.latex import booktabs
from twotowers.results.statistics import BAND, compare

NAMES = {
    "yahoo-gradrev": "GradRev",
    "yahoo-drop": "Drop",
    "yahoo-combination": "Drop + GradRev",
}
KEYS = ["setting", "mixing_weight", "metric"]


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    """One row per method and source; of both together nothing is printed but a difference."""
    fair = on_common_grid(results, needs)
    rows = pd.concat([won(fair, setting, "ndcg") for setting in needs])
    where = {"setting": list(needs), "metric": "ndcg@5", "mixing_weight": 1}
    return compare(rows, published, KEYS, **where)[[*KEYS, "source", *BAND]]


def tex(table: pd.DataFrame) -> str:
    """A booktabs table."""
    wide = table.pivot(index="setting", columns="source", values="value")
    body = []
    for setting, name in NAMES.items():
        ours, printed = (wide.loc[setting].get(each) for each in ("reproduced", "published"))
        printed = "--" if pd.isna(printed) else f"{printed:.4f}"
        body.append(rf"{name} & {ours:.4f} & {printed} \\")
    return booktabs(["method", "ours", "paper"], body, columns="lrr", packages=["booktabs"])

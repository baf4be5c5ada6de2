"""The printed marks of Table 2.2 beside what the described test gives on the printed numbers."""

import pandas as pd

from papers.hager2023.grid import DATASETS, MEASURES, METHODS, PRODUCTION, STRICTEST
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

TITLES = {PRODUCTION: PRODUCTION, **METHODS}
SIGNS = {1: "higher", -1: "lower", 0: "--"}
P, PRINTED, TESTED = "p of the described test", "printed mark", "mark by the described test"
CALLED = {"mark_p": P, "mark_printed": PRINTED, "mark_tested": TESTED}
HEADS = ["Data set", "Model", "Metric", "$p$", "printed", f"tested, {STRICTEST} comparisons"]


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = select(results, setting="theory", metric=list(CALLED))
    keys = ["dataset", "method", "measure", "metric", "comparisons"]
    return over_seeds(rows, keys).assign(source="reproduced").replace({"metric": CALLED})


def tex(table: pd.DataFrame) -> str:
    """A booktabs table; p is not corrected."""
    body = []
    for (dataset, method, measure), rows in table.groupby(
        ["dataset", "method", "measure"], sort=False
    ):
        values = rows.set_index("metric")["value"]
        tested = select(rows, metric=TESTED, comparisons=STRICTEST)["value"].iloc[0]
        signs = [SIGNS[int(mark)] for mark in (values[PRINTED], tested)]
        names = DATASETS[dataset], TITLES[method], MEASURES[measure]
        body.append([*names, f"{values[P]:.1e}", *signs])
    return booktabs(HEADS, body, columns="lllrll")

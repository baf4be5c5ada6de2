"""Table 2.2: a row per data set and model, ours above the printed, with the thesis' marks."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from papers.hager2023 import grid
from twotowers.claims.statistics import from_moments, select
from twotowers.report.latex import booktabs

TITLES = {grid.PRODUCTION: grid.PRODUCTION, **grid.METHODS}
COMPARISONS = len(grid.DATASETS) * len(grid.MEASURES) * (len(TITLES) - 1)
SYMBOLS = {1: r"$^{\blacktriangle}$", -1: r"$^{\blacktriangledown}$", 0: ""}


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    """One row per data set, model, metric and source: mean, interval, deviation, mark.

    Our marks take ten runs; there are none of fewer.
    """
    parts = []
    for dataset, metric, method in product(grid.DATASETS, grid.MEASURES, TITLES):
        own, pbm, printed = (
            select(rows, **grid.of_method(dataset, name, metric), sessions=grid.FULL)
            for rows, name in ((results, method), (results, "pbm"), (published, method))
        )
        if own.empty:
            continue
        place = {"dataset": dataset, "method": method, "metric": metric}
        ours = own["value"].agg(value="mean", sd="std", n="size").to_dict()
        mark = _mark(own["value"], pbm["value"])
        parts.append({**place, **ours, "mark": mark, "source": "reproduced"})
        if len(printed):
            theirs = printed.iloc[0][["value", "sd", "n"]].to_dict()
            mark = grid.printed_mark(published, dataset, method, metric)
            parts.append({**place, **theirs, "mark": mark, "source": "published"})
    keys = ["dataset", "method", "metric", "source", "sd", "mark"]
    return from_moments(pd.DataFrame(parts), keys)


def _mark(own: pd.Series, pbm: pd.Series) -> int:
    if pbm.empty or len(own) < grid.RUNS:
        return 0
    t, p = ttest_ind(own, pbm)
    return int(np.sign(t)) if p * COMPARISONS < grid.ALPHA else 0


def tex(table: pd.DataFrame) -> str:
    heads = ["Data set", "Model", "", *grid.MEASURES.values()]
    body = []
    for dataset, title in grid.DATASETS.items():
        body += [r"\midrule"] * bool(body)
        for method, name in TITLES.items():
            rows = select(table, dataset=dataset, method=method)
            for source, label in (("reproduced", "ours"), ("published", "thesis")):
                one = select(rows, source=source).set_index("metric")
                if len(one):
                    cells = (_cell(one.loc[metric]) for metric in grid.MEASURES)
                    body.append([title, name, label, *cells])
                    title = name = ""
    return booktabs(heads, body, columns="lllrrr")


def _cell(row: pd.Series) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ({row['sd']:.3f})"
    return f"{row['value']:.3f}{spread}{SYMBOLS[int(row['mark'])]}"

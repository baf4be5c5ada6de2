"""Table 2.2: a row per data set and model, ours above the printed, with the thesis' marks."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.hager2023.grid import (
    ALPHA,
    DATASETS,
    FULL,
    MEASURES,
    METHODS,
    PRODUCTION,
    RUNS,
    of_method,
    printed_mark,
    t_test,
)
from twotowers.claims.statistics import from_moments, select
from twotowers.report.latex import booktabs

TITLES = {PRODUCTION: PRODUCTION, **METHODS}
COMPARISONS = len(DATASETS) * len(MEASURES) * (len(TITLES) - 1)
SYMBOLS = {1: r"$^{\blacktriangle}$", -1: r"$^{\blacktriangledown}$", 0: ""}


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    """One row per data set, model, metric and source: mean, interval, deviation, mark.

    Our marks take ten runs; there are none of fewer.
    """
    parts = []
    for dataset in DATASETS:
        for metric in MEASURES:
            own = {method: _moments(results, dataset, method, metric) for method in TITLES}
            for method, measured in own.items():
                if measured is None:
                    continue
                place = {"dataset": dataset, "method": method, "metric": metric}
                mark = _mark(measured, own["pbm"]) if method != "pbm" else 0
                parts.append({**place, **measured, "mark": mark, "source": "reproduced"})
                printed = select(published, **of_method(dataset, method, metric), sessions=FULL)
                if len(printed):
                    moments = printed.iloc[0][["value", "sd", "n"]].to_dict()
                    mark = printed_mark(published, dataset, method, metric)
                    parts.append({**place, **moments, "mark": mark, "source": "published"})
    rows = pd.DataFrame(parts)
    keys = ["dataset", "method", "metric", "source", "sd", "mark"]
    return from_moments(rows, keys)


def _moments(results, dataset, method, metric) -> dict | None:
    rows = select(results, **of_method(dataset, method, metric), sessions=FULL)
    if rows.empty:
        return None
    values = rows["value"]
    return {"value": values.mean(), "sd": values.std(), "n": len(values)}


def _mark(measured: dict, pbm: dict | None) -> int:
    if pbm is None or measured["n"] < RUNS:
        return 0
    t, p = t_test(measured["value"], measured["sd"], pbm["value"], pbm["sd"], measured["n"])
    return int(np.sign(t)) if p * COMPARISONS < ALPHA else 0


def tex(table: pd.DataFrame) -> str:
    heads = ["Data set", "Model", "", *MEASURES.values()]
    body = []
    for dataset, title in DATASETS.items():
        body += [r"\midrule"] * bool(body)
        for method, name in TITLES.items():
            rows = select(table, dataset=dataset, method=method)
            for source, label in (("reproduced", "ours"), ("published", "thesis")):
                one = select(rows, source=source).set_index("metric")
                if len(one):
                    cells = (_cell(one.loc[metric]) for metric in MEASURES)
                    body.append([title, name, label, *cells])
                    title = name = ""
    return booktabs(heads, body, columns="lllrrr")


def _cell(row: pd.Series) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ({row['sd']:.3f})"
    return f"{row['value']:.3f}{spread}{SYMBOLS[int(row['mark'])]}"

"""The thesis's tests: paired t over queries and runs, at .01, divided by the size of the group."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from papers.hager2024.names import FEATURES, GROUPS, LOSS, RANKING
from twotowers.claims.claims import NotTestable
from twotowers.claims.paired import against_baseline
from twotowers.claims.statistics import select

ALPHA = 0.01
UNITS = {"run": "runs of queries", "query": "queries"}
"""What may count as a pair: as published, and once per query."""
CHANGE = "_change"
"""Ends the metric of a printed mark: 1 for better, -1 for worse, 0 for none."""


def changes(
    results: pd.DataFrame,
    features: str,
    *,
    unit: str = "run",
    metrics: Sequence[str] = (*RANKING, LOSS),
) -> pd.DataFrame:
    """Whether each method of a set of features differs significantly from its naive model.

    Args:
        results: With the values of every query, or with printed marks.
        features: The prefix of the settings.
        unit: What counts as a pair; see `twotowers.claims.paired.against_baseline`.
        metrics: Those to test.

    Returns:
        Columns setting, metric and value: 1 (higher), -1 (lower) or 0.
    """
    of = {"query_nll" if metric == LOSS else f"query_{metric}": metric for metric in metrics}
    names = [f"{features}-{name}" for group in GROUPS for name in group]
    wanted = [*of, *(metric + CHANGE for metric in metrics)]
    rows = select(results, setting=names, metric=wanted)
    printed = rows[rows["metric"].str.endswith(CHANGE)]
    if len(printed):
        if unit != "run":
            raise NotTestable("only tests with runs of queries as pairs are printed")
        metric = printed["metric"].str.removesuffix(CHANGE)
        return printed.assign(metric=metric)[["setting", "metric", "value"]]
    tested = [pd.DataFrame(columns=["setting", "metric", "value"])]
    if rows.empty:
        return tested[0]
    rows = rows[["setting", "query", "seed", "value"]].assign(metric=rows["metric"].map(of))
    for group in GROUPS:
        # The naive model counts among the tests.
        own = [f"{features}-{name}" for name in group]
        values = select(rows, setting=own).rename(columns={"setting": "method"})
        measured = values.loc[values["method"] == own[0], "metric"].unique()
        values = values[values["metric"].isin(measured)]
        means = against_baseline(
            values, own[0], unit=unit, alpha=ALPHA, tests=len(own), by=["metric"]
        )
        means = means.rename(columns={"method": "setting", "change": "value"})
        tested.append(means[["setting", "metric", "value"]])
    return pd.concat(tested, ignore_index=True)


def counted(results: pd.DataFrame) -> pd.DataFrame:
    """The number of significant gains and losses in ranking, by features and unit.

    Returns:
        Columns features, unit, sign (1 or -1) and value.
    """
    rows = []
    for of in FEATURES:
        for unit in UNITS:
            ranking = changes(results, of, unit=unit, metrics=RANKING)["value"]
            rows += [(of, unit, sign, int(ranking.eq(sign).sum())) for sign in (1, -1)]
    return pd.DataFrame(rows, columns=["features", "unit", "sign", "value"])

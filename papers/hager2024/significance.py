"""The thesis's tests: paired t over queries and runs, at .01, divided by the size of the group."""

from __future__ import annotations

import pandas as pd

from papers.hager2024.names import FEATURES, GROUPS, LOSS, RANKING
from twotowers.results.claims import NotTestable
from twotowers.results.paired import against_baseline
from twotowers.results.statistics import select

ALPHA = 0.01
UNITS = {"run": "runs of queries", "query": "queries"}
"""What may count as a pair: as published, and once per query."""
CHANGE = "_change"
"""Ends the metric of a printed mark: 1 for better, -1 for worse, 0 for none."""


def changes(results: pd.DataFrame, features: str, *, unit: str = "run") -> pd.DataFrame:
    """Whether each method of a set of features differs significantly from its naive model.

    Args:
        results: With the values of every query, or with printed marks.
        features: The prefix of the settings.
        unit: What counts as a pair; see `twotowers.results.paired.against_baseline`.

    Returns:
        Columns setting, metric and value: 1 (higher), -1 (lower) or 0.

    Raises:
        NotTestable: marks are printed, and not those of this unit.
    """
    printed = results[results["metric"].str.endswith(CHANGE)]
    printed = printed[printed["setting"].str.startswith(f"{features}-")]
    if len(printed):
        if unit != "run":
            raise NotTestable("only tests with runs of queries as pairs are printed")
        metric = printed["metric"].str.removesuffix(CHANGE)
        return printed.assign(metric=metric)[["setting", "metric", "value"]]
    found = []
    for group in GROUPS:
        names = [f"{features}-{name}" for name in group]
        for metric in (*RANKING, LOSS):
            of = "query_nll" if metric == LOSS else f"query_{metric}"
            rows = select(results, setting=names, metric=of)
            if set(rows["setting"]) != set(names):
                continue
            values = rows[["query", "seed", "value"]].assign(method=rows["setting"])
            # The naive model counts among the tests.
            tested = against_baseline(values, names[0], unit=unit, alpha=ALPHA, tests=len(names))
            found += [(row.method, metric, row.change) for row in tested.itertuples()]
    return pd.DataFrame(found, columns=["setting", "metric", "value"])


def counted(results: pd.DataFrame) -> pd.DataFrame:
    """The number of significant gains and losses in ranking, by features and unit.

    Returns:
        Columns features, unit, sign (1 or -1) and value.
    """
    rows = []
    for of in FEATURES:
        for unit in UNITS:
            found = changes(results, of, unit=unit)
            ranking = found.loc[found["metric"] != LOSS, "value"]
            rows += [(of, unit, sign, int(ranking.eq(sign).sum())) for sign in (1, -1)]
    return pd.DataFrame(rows, columns=["features", "unit", "sign", "value"])

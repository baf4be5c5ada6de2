"""The thesis's tests: paired t over queries and runs, at .01, divided by the size of the group."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.hager2024.names import FEATURES, GROUPS, LOSS, RANKING
from twotowers.claims.claims import NotTestable
from twotowers.claims.statistics import paired_p, select

ALPHA = 0.01
UNITS = {"run": "runs of queries", "query": "queries"}
"""What may count as a pair: as published, a query in a run; and a query, the mean of its runs."""
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

    Results have the values of every query, or printed marks. Values are 1 (higher), -1 (lower) or
    0.
    """
    of = {"query_nll" if metric == LOSS else f"query_{metric}": metric for metric in metrics}
    names = [f"{features}-{name}" for group in GROUPS for name in group]
    rows = select(results, setting=names, metric=[*of, *(each + CHANGE for each in metrics)])
    printed = rows[rows["metric"].str.endswith(CHANGE)]
    if len(printed):
        if unit != "run":
            raise NotTestable("only tests with runs of queries as pairs are printed")
        metric = printed["metric"].str.removesuffix(CHANGE)
        return printed.assign(metric=metric)[["setting", "metric", "value"]]
    tested = [pd.DataFrame(columns=["setting", "metric", "value"])]
    for group in GROUPS if len(rows) else ():
        # The naive model counts among the tests.
        own = [f"{features}-{name}" for name in group]
        values = select(rows, setting=own)
        for metric, each in values.groupby(values["metric"].map(of)):
            if own[0] in set(each["setting"]):
                means = against_baseline(each, own[0], unit=unit, level=ALPHA / len(own))
                tested.append(means.assign(metric=metric)[[*tested[0]]])
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


def against_baseline(
    values: pd.DataFrame, baseline: str, *, unit: str, level: float
) -> pd.DataFrame:
    """Each setting against the baseline, by paired t tests of a level: p, n (pairs), value.

    The published tests have `unit` "run", and the level .01 divided by the number of methods with
    the baseline among them (Hager 2026, Tables 3.3 to 3.5). A query's runs are then independent
    pairs, although they share the query, so their number is too large. Unit "query" asks whether
    the mean over these runs differs on other queries. The change, `value`, is 1 or -1 if a
    mean is significantly higher or lower, else 0; p is uncorrected. Values are by setting, query
    and seed (run).
    """
    pair = ["query", "seed"] if unit == "run" else ["query"]
    table = values.groupby([*pair, "setting"], sort=False)["value"].mean().unstack(sort=False)
    if table.isna().any(axis=None):
        raise ValueError(f"methods have different values of {pair}")
    rows = []
    for method in table.columns.drop(baseline):
        p = paired_p(table[method], table[baseline])
        difference = (table[method] - table[baseline]).mean()
        rows.append((method, p, len(table), int(np.sign(difference)) if p <= level else 0))
    return pd.DataFrame(rows, columns=["setting", "p", "n", "value"])

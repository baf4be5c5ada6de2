"""Paired t tests of methods against a baseline, with Bonferroni's correction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from twotowers.claims.statistics import paired_p

UNITS = {"run": ["query", "seed"], "query": ["query"], "seed": ["seed"]}
"""What a pair is: a query in a run, a query (the mean of its runs), or a run (the mean of its
queries)."""


def against_baseline(
    values: pd.DataFrame,
    baseline: str,
    *,
    unit: str = "query",
    alpha: float = 0.01,
    tests: int | None = None,
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Each method against the baseline: the difference of means, p, and whether it is significant.

    The published tests have `unit` "run" and `tests` of the methods with the baseline among them
    (Hager 2026, Tables 3.3 to 3.5). A query's runs are then independent pairs, although they share
    the query, so their number is too large. Unit "query" asks whether the mean over these runs
    differs on other queries. Unit "seed" asks whether other runs differ on these queries.

    Args:
        values: columns `by`, method, query, seed and value: a number per query and run.
        baseline: the method that the others are compared with.
        unit: "run", "query" or "seed".
        alpha: level of the whole group of tests, in (0, 1).
        tests: the number by which alpha is divided. None counts the methods without the baseline.
        by: further columns; a group of tests is a combination of their values.

    Returns:
        Columns `by`, method, difference (of means), p (uncorrected), n (pairs), and change: 1 or
        -1 if the method's mean is significantly higher or lower, else 0. Sorted by `by`; methods
        are in their order.

    Example:
        >>> values = pd.DataFrame({
        ...     "method": ["naive"] * 4 + ["ips"] * 4, "query": [1, 1, 2, 2] * 2,
        ...     "seed": [1, 2] * 4, "value": [1.0, 1.2, 3.0, 3.4, 1.5, 1.8, 3.6, 4.0],
        ... })
        >>> against_baseline(values, "naive", unit="run")[["method", "n", "change"]].values.tolist()
        [['ips', 4, 1]]
    """
    if unit not in UNITS:
        raise ValueError(f"unit {unit!r} is none of {list(UNITS)}")
    by = list(by)
    groups = values.groupby(by, sort=True, dropna=False) if by else [((), values)]
    rows = []
    for key, group in groups:
        means = group.groupby([*UNITS[unit], "method"], sort=False)["value"].mean()
        table = means.unstack("method", sort=False)
        if baseline not in table:
            raise ValueError(f"{baseline!r} is missing among {list(table)}")
        if table.isna().any(axis=None):
            raise ValueError(f"methods have different values of {UNITS[unit]}")
        others = [method for method in table if method != baseline]
        level = alpha / (tests or len(others))
        for method in others:
            p = paired_p(table[method], table[baseline])
            difference = (table[method] - table[baseline]).mean()
            change = int(np.sign(difference)) if p <= level else 0
            rows.append((*key, method, difference, p, len(table), change))
    return pd.DataFrame(rows, columns=[*by, "method", "difference", "p", "n", "change"])

"""Means of studies: a LaTeX table, a line per value of a column, and a column per metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs, scientific


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    keys: Sequence[str],
    where: Mapping,
    line: str,
    lines: Mapping[str, str],
    metrics: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """One row per line and metric: mean and 95 % interval over seeds.

    Args:
        keys: The key columns of the csv.
        where: The selection, by column.
        line, lines: A key, and from its values to what their lines are called.
        metrics: From metrics to the headings of their columns; absent, lines are metrics.
    """
    where = {line: list(lines), **({"metric": list(metrics)} if metrics else {}), **where}
    return over_seeds(select(results, **where), list(keys)).assign(source="reproduced")


def tex(
    table: pd.DataFrame,
    *,
    line: str,
    lines: Mapping[str, str],
    heads: Sequence[str],
    metrics: Mapping[str, str] | None = None,
    forms: Mapping[str, str] | None = None,
) -> str:
    """A booktabs table.

    Args:
        heads: The heading of the lines and, where lines are metrics, that of their values.
        forms: How numbers of metrics are written, such as ".3f"; as powers of ten if absent.
    """
    names = metrics or {"value": heads[1]}
    wide = table.set_index(line)[["value"]]
    if metrics:
        wide = table.pivot(index=line, columns="metric", values="value")
    body = [
        [title, *(_written(wide.loc[line].get(name), (forms or {}).get(name)) for name in names)]
        for line, title in lines.items()
    ]
    return booktabs([heads[0], *names.values()], body, columns="l" + "r" * len(names))


def _written(value: float | None, form: str | None) -> str:
    if value is None or pd.isna(value):
        return "--"
    return f"{value:{form}}" if form else f"${scientific(value, 2)}$"

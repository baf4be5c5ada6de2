"""Counts by row and column: a LaTeX table, each of ours beside the printed one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from twotowers.claims.moments import measured
from twotowers.claims.statistics import compare
from twotowers.report.latex import booktabs, count

Names = Mapping[str, Mapping[str, str]]


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    needs: Sequence[str],
    rows: Names,
    columns: Names,
    keys: Sequence[str],
    where: Mapping | None = None,
) -> pd.DataFrame:
    """One row per count and source: mean and 95 % interval over seeds. Rows are those counted here.

    Args:
        needs: What the item needs.
        rows: The column of the results that makes rows, and its values with their names.
        columns: The same for columns.
        keys: The key columns of the csv.
        where: Values of further columns.
    """
    lanes = {lane: list(names) for lane, names in columns.items()}
    lanes |= {lane: [*filter(set(results[lane]).__contains__, own)] for lane, own in rows.items()}
    where = {**lanes, **(where or {})}
    ours = measured(results, needs, **where)
    return compare(ours, published, keys, setting=list(needs), **where)


def tex(
    table: pd.DataFrame,
    *,
    rows: Names,
    columns: Names,
    heading: str = "",
    test: Mapping | None = None,
) -> str:
    """A booktabs table, the printed counts in grey.

    Args:
        heading: Of the rows' names.
        test: A last column of yes and no: its `heading`, and the `column` of which our count has
            to be of some `value`.
    """
    ((row, names), (column, headings)) = *rows.items(), *columns.items()
    cells = table.set_index([row, column, "source"])["value"].to_dict()
    body = []
    counted = set(table[row])
    for value, name in names.items():
        if value not in counted:
            continue
        texts = [name]
        for other in headings:
            for source in ("reproduced", "published"):
                texts.append(count(cells.get((value, other, source))))
        if test:
            passed = cells[value, test["column"], "reproduced"] == test["value"]
            texts.append("yes" if passed else "no")
        body.append(texts)
    top = [heading]
    for name in headings.values():
        top += [name, "paper"]
    top += [test["heading"]] if test else []
    return booktabs(top, body, columns="l" + "rr" * len(headings) + ("l" if test else ""))

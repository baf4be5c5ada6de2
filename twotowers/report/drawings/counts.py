"""Counts and other means by row and column: a LaTeX table, ours beside printed ones."""

from collections.abc import Mapping, Sequence

import pandas as pd

from twotowers.claims.statistics import compare, measured, select
from twotowers.report.latex import booktabs, count, scientific

Names = Mapping[str, Mapping[str, str]]
SOURCES = ("reproduced", "published")


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
    """One row per number and source: mean and 95 % interval over seeds. Rows are those of ours.

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
    # Where nothing is printed, the printed numbers may lack the lanes.
    return compare(ours, select(published, setting=list(needs)), keys, **where)


def tex(
    table: pd.DataFrame,
    *,
    rows: Names,
    columns: Names,
    heading: str = "",
    forms: Mapping[str, str] | None = None,
    test: Mapping | None = None,
) -> str:
    """A booktabs table, the printed numbers in grey, if there are any.

    Args:
        heading: Of the rows' names.
        forms: How the numbers of columns are written, such as ".3f", or "power" for powers of ten;
            as counts if absent.
        test: A last column of yes and no: its `heading`, and the `column` of which our count has
            to be of some `value`.
    """
    ((row, names), (column, headings)) = *rows.items(), *columns.items()
    cells = table.set_index([row, column, "source"])["value"].to_dict()
    sources = [each for each in SOURCES if (table["source"] == each).any()]
    body, counted = [], set(table[row])
    for value, name in names.items():
        if value not in counted:
            continue
        numbers = [
            _written(cells.get((value, other, source)), (forms or {}).get(other))
            for other in headings
            for source in sources
        ]
        passed = test and cells[value, test["column"], "reproduced"] == test["value"]
        body.append([name, *numbers, *(["yes" if passed else "no"] if test else [])])
    pairs = [each for name in headings.values() for each in [name, "paper"][: len(sources)]]
    top = [heading, *pairs, *([test["heading"]] if test else [])]
    aligned = "l" + "r" * len(sources) * len(headings) + ("l" if test else "")
    return booktabs(top, body, columns=aligned)


def _written(value: float | None, form: str | None) -> str:
    if form is None or value is None or pd.isna(value):
        return count(value)
    return f"${scientific(value, 2)}$" if form == "power" else f"{value:{form}}"

"""The paper's printed numbers, in the long form of our own.

`published/tables.csv` holds Tables 1 to 6 and the numbers of the running text, digit by digit.
Its column bound is '<' where the paper prints a number that the value is below, and '<' and '>'
on the two ends of a range. The figures' curves are not published as numbers.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "published"

RUNS = {"table1": 10, "table6": 10}
"""Runs behind a mean; all other numbers are counts."""

LANE = [
    "paper", "setting", "method", "components", "clicks", "variant", "dataset", "start", "sweep",
    "amount", "factors",
]  # fmt: skip


def bands(folder: Path = FOLDER) -> pd.DataFrame:
    """Every published number once, with its spread.

    Table 2 is left out: it prints rows of Table 6 again, with fewer digits.

    Returns:
        Columns paper, setting, method, the lanes (components, clicks, variant, dataset, start,
        sweep, amount, factors; NA where they do not apply), metric, position, value (the mean),
        sd (NaN where not published), n (runs) and bound ('<', '>', or '' for the value itself).
    """
    table = pd.read_csv(folder / "tables.csv").query("item != 'table2'")
    return table.assign(
        paper="chen2024",
        setting=[_setting(row) for row in table.itertuples()],
        n=table["item"].map(RUNS).fillna(1).astype(int),
        bound=table["bound"].fillna(""),
    ).astype({"position": "Int64", "components": "Int64", "clicks": "Int64"})[
        [*LANE, "metric", "position", "value", "sd", "n", "bound"]
    ].reset_index(drop=True)  # fmt: skip


def results(folder: Path = FOLDER) -> pd.DataFrame:
    """The published means as if they were results of a single seed, numbered 0, for the judges.

    What is printed as a bound counts as the value itself; of a range, its upper end does.
    """
    table = bands(folder).query("bound != '>'")
    return table.drop(columns=["sd", "n", "bound"]).assign(seed=0).reset_index(drop=True)


def _setting(row) -> str:
    """Our study that makes a row's number."""
    if row.item == "table1":
        return "synthetic"
    if isinstance(row.factors, str):
        return "verticals"
    study = "contexts" if row.item == "table6" else "connectivity"
    return f"{study}-{row.dataset}"

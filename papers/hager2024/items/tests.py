"""How many differences are significant, by what counts as a pair: a run of a query, or a query."""

import pandas as pd

from papers.hager2024.names import FEATURES
from papers.hager2024.significance import UNITS, counted
from twotowers.report.latex import booktabs, count


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = counted(results)
    return rows.assign(low=float("nan"), high=float("nan"), n=1, source="reproduced")


def tex(table: pd.DataFrame) -> str:
    cells = table.set_index(["features", "unit", "sign"])["value"]
    body = [
        [name, *(count(cells[of, unit, sign]) for unit in UNITS for sign in (1, -1))]
        for of, name in FEATURES.items()
    ]
    heads = [f"{sign}, {words}" for words in UNITS.values() for sign in ("better", "worse")]
    return booktabs(["Features", *heads], body, columns="l" + "r" * len(heads))

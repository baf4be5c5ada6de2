"""Results on which every claim of a paper holds: `contract/claimed/<paper>.csv`.

A row has a setting, a metric, the lanes, and the values of the seeds 0, 1 and so on. `.7*10` is .7
ten times.
"""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pandas as pd

from twotowers.claims.statistics import select

FOLDER = Path(__file__).parent / "contract" / "claimed"


@cache
def claimed(paper: str) -> pd.DataFrame:
    """The results, long form. Nobody may change them."""
    table = pd.read_csv(FOLDER / f"{paper}.csv", dtype={"values": str})
    table["value"] = table.pop("values").map(_numbers)
    table["seed"] = table["value"].map(lambda values: [*range(len(values))])
    table = table.explode(["value", "seed"], ignore_index=True)
    table = table.astype({"value": float, "seed": int})
    whole = {"position": "Int64"} if "position" in table else {}
    return table.astype(whole).assign(paper=paper)


def claimed_of(paper: str, settings: Iterable[str]) -> pd.DataFrame:
    """The results of some settings and studies. Columns without a value are left out."""
    rows = select(claimed(paper), setting=list(settings))
    return rows.dropna(axis="columns", how="all").assign(position=rows["position"])


def _numbers(text: str) -> list[float]:
    parts = (part.partition("*") for part in text.split())
    return [float(value) for value, _, times in parts for _ in range(int(times or 1))]


def altered(results: pd.DataFrame, change: Callable[[pd.DataFrame], object], **where):
    """The results with `change(selected rows)` in place of the selected values."""
    rows = select(results, **where)
    assert len(rows), where
    results = results.copy()
    results.loc[rows.index, "value"] = change(rows)
    return results

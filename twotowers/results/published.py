"""The authors' printed numbers, in the long form of our own.

They lie in `papers/<paper>/published/*.csv`, a row per number, digit by digit. Columns: setting,
the setting or study of ours that makes the number; what tells rows apart, as in ours; metric;
position, where there is one; value (the mean); sd; n (runs; 1 if empty); and bound: '<' where the
paper prints a number that the value is below, '<' and '>' on the two ends of a range. A row without
a setting prints once more what another row has, and is left out; the column `item` says where a
number is printed, for a reader.

A paper whose files have another form brings a `published.py` with `bands()`, which gives this one.
"""

from __future__ import annotations

from importlib import import_module

import pandas as pd

from twotowers import ROOT
from twotowers.results.moments import whole

MEASURES = {"value", "sd"}


def bands(paper: str) -> pd.DataFrame:
    """Every published number once, with its spread.

    Returns:
        Columns paper, setting, those that tell rows apart (NA where they do not apply), metric,
        position, value, sd (NaN where not published), n, and bound if there are any. Of a paper
        without printed numbers, no row.
    """
    folder = ROOT / "papers" / paper
    if (folder / "published.py").is_file():
        return import_module(f"papers.{paper}.published").bands()
    tables = [pd.read_csv(path) for path in sorted((folder / "published").glob("*.csv"))]
    if not tables:
        return pd.DataFrame(columns=["paper", "setting", "metric", "position", "value", "sd", "n"])
    table = pd.concat(tables, ignore_index=True).dropna(subset="setting")
    table = table.drop(columns="item", errors="ignore").assign(
        paper=paper, n=table["n"].fillna(1).astype(int), bound=table["bound"].fillna("")
    )
    keys = [name for name in table if name not in MEASURES]
    return whole(table.astype({"position": "Int64"}), keys).reset_index(drop=True)


def results(paper: str) -> pd.DataFrame:
    """The published means as if they were results of a single seed, numbered 0, for the judges.

    What is printed as a bound counts as the value itself; of a range, its upper end does.
    """
    table = bands(paper)
    if "bound" in table:
        table = table[table["bound"] != ">"].drop(columns="bound")
    return table.drop(columns=["sd", "n"]).assign(seed=0).reset_index(drop=True)

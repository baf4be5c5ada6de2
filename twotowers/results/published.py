"""The authors' printed numbers, in the long form of our results.

They are in `papers/<paper>/published/*.csv`, one row per number, with the digits as printed. The
columns are

    setting     our setting or study that computes the number
    ...         the columns that tell rows apart, as in our results
    metric
    position    empty if the metric has none
    value       the mean
    sd          the standard deviation over runs
    n           runs; 1 if empty
    bound       '<' if the paper prints an upper bound; '<' and '>' at the two ends of a range
    item        where the number is printed (for readers only)

Rows without a setting repeat a number of another row and are not read.

If the files of a paper have another form, its `published.py` has a function `bands()` that returns
this form.
"""

from __future__ import annotations

from importlib import import_module

import pandas as pd

from twotowers import ROOT
from twotowers.results.moments import whole

MEASURES = {"value", "sd"}


def bands(paper: str) -> pd.DataFrame:
    """All published numbers of a paper, with standard deviations and numbers of runs.

    Returns:
        Columns paper, setting, those that tell rows apart (NA where they do not apply), metric,
        position, value, sd (NaN if not published), n, and bound if any is printed. A paper without
        printed numbers has no rows.
    """
    folder = ROOT / "papers" / paper
    if (folder / "published.py").is_file():
        return import_module(f"papers.{paper}.published").bands()
    tables = [
        pd.read_csv(path, dtype={"bound": str})
        for path in sorted((folder / "published").glob("*.csv"))
    ]
    if not tables:
        return pd.DataFrame(columns=["paper", "setting", "metric", "position", "value", "sd", "n"])
    table = pd.concat(tables, ignore_index=True).dropna(subset="setting")
    table = table.drop(columns="item", errors="ignore").assign(
        paper=paper,
        n=table["n"].fillna(1).astype(int),
        bound=table["bound"].astype(object).fillna(""),
    )
    keys = [name for name in table if name not in MEASURES]
    return whole(table.astype({"position": "Int64"}), keys).reset_index(drop=True)


def results(paper: str) -> pd.DataFrame:
    """The published means in the form of our results, for the judges. The seed is 0.

    A printed bound counts as the value. Of a range, the upper end counts.
    """
    table = bands(paper)
    if "bound" in table:
        table = table[table["bound"] != ">"].drop(columns="bound")
    return table.drop(columns=["sd", "n"]).assign(seed=0).reset_index(drop=True)

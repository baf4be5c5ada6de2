"""The authors' numbers, printed or of single runs, in the long form of our results.

Printed numbers are in `papers/<paper>/published/*.csv`, one row per number, with the digits as
printed. The columns are

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

Single runs that the authors published are in `published/runs/*.csv`. They have a column seed (the
authors' number of the run) in place of sd and n. A column item, if it is filled, says that only
claims on this item are about the row, and that these are about no other. So two experiments of a
paper may have runs of the same setting.
"""

import pandas as pd

from twotowers.claims.statistics import whole
from twotowers.root import ROOT

MEASURES = {"value", "sd"}


def bands(paper: str, item: str | None = None) -> pd.DataFrame:
    """All published numbers of a paper, with standard deviations and numbers of runs.

    Columns paper, setting, those that tell rows apart (NA where they do not apply), metric,
    position, value, sd (NaN if not published), n, and bound if any is printed. Beside an item, a
    number that the paper prints elsewhere gives way to the mean of the runs: a table may round, or
    be of other pages.
    """
    tables = [
        pd.read_csv(path, dtype={"bound": str})
        for path in sorted((ROOT / "papers" / paper / "published").glob("*.csv"))
    ]
    printed = [table.dropna(subset="setting") for table in tables]
    elsewhere = [table[(table["item"] != item) & (item is not None)] for table in printed]
    own = [table.drop(other.index) for table, other in zip(printed, elsewhere, strict=True)]
    means = _means(runs(paper))
    if not printed and means.empty:
        return pd.DataFrame(columns=["paper", "setting", "metric", "position", "value", "sd", "n"])
    parts = [*own, *([means] if len(means) else []), *elsewhere]
    table = pd.concat(parts, ignore_index=True).drop(columns="item", errors="ignore")
    table = table.assign(
        paper=paper,
        n=table["n"].fillna(1).astype(int),
        bound=table["bound"].astype(object).fillna("") if "bound" in table else "",
    ).astype({"position": "Int64"})
    keys = [name for name in table if name not in MEASURES]
    # The authors may print a mean and also publish its runs: the first is kept.
    table = table.drop_duplicates([name for name in keys if name != "n"])
    return whole(table, keys).reset_index(drop=True)


def runs(paper: str, item: str | None = None) -> pd.DataFrame:
    """All single runs that a paper's authors published, of an item or of all."""
    folder = ROOT / "papers" / paper / "published" / "runs"
    tables = [pd.read_csv(path) for path in sorted(folder.glob("*.csv"))]
    if not tables:
        return pd.DataFrame(columns=["paper", "setting", "seed", "metric", "position", "value"])
    table = pd.concat(tables, ignore_index=True).assign(paper=paper).astype({"position": "Int64"})
    return table if item is None else about(table, item)


def about(authors: pd.DataFrame, item: str) -> pd.DataFrame:
    """The rows of authors' results that claims on an item are about."""
    if "item" not in authors:
        return authors
    own = authors["item"] == item
    return authors[own if own.any() else authors["item"].isna()].drop(columns="item")


def _means(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of runs, of what no single item is about."""
    common = runs[runs["item"].isna()].drop(columns="item") if "item" in runs else runs
    keys = [name for name in common if name not in ("seed", "value")]
    grouped = common.groupby(keys, dropna=False, sort=False)["value"]
    return grouped.agg(value="mean", sd="std", n="size").reset_index()


def results(paper: str) -> pd.DataFrame:
    """The authors' results in the form of ours, for the judges: runs, else printed means as seed 0.

    A printed bound counts as the value. Of a range, the upper end counts.
    """
    table, single = bands(paper), runs(paper)
    if "bound" in table:
        table = table[table["bound"] != ">"].drop(columns="bound")
    known = pd.MultiIndex.from_frame(single[["setting", "metric"]])
    table = table[~pd.MultiIndex.from_frame(table[["setting", "metric"]]).isin(known)]
    table = table.drop(columns=["sd", "n"]).assign(seed=0)
    if single.empty:
        return table.reset_index(drop=True)
    # Ours are plain numbers, with NaN where a lane is of another setting.
    lanes = [name for name, kind in table.dtypes.items() if kind in ("Int64", "Float64")]
    table = table.astype({name: float for name in lanes if name != "position"})
    both = pd.concat([single, table], ignore_index=True)
    # As in `read_results`: rows of objects are taken several times as fast as texts of Arrow.
    return both.astype(dict.fromkeys(both.select_dtypes("str"), object))

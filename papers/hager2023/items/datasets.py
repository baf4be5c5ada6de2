"""Table 2.1: the data sets, ours above the printed."""

from collections.abc import Sequence

import pandas as pd

from papers.hager2023.grid import DATASETS
from twotowers.claims.statistics import compare, select
from twotowers.report.latex import booktabs

COLUMNS = {
    "features": ("Features", ",.0f"),
    "queries": ("Queries", ",.0f"),
    "percent_train": ("Train", ".1f"),
    "percent_validation": ("Val", ".1f"),
    "percent_test": ("Test", ".1f"),
    "fewest": ("Min", ".0f"),
    "mean": ("Mean", ".0f"),
    "median": ("Median", ".0f"),
    "p90": ("p90", ".0f"),
    "most": ("Max", ",.0f"),
    "share_kept": ("Kept", ".3f"),
    "share_moved": ("Moved", ".4f"),
}


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    return compare(results, published, ["setting", "metric"], setting=list(needs))


def tex(table: pd.DataFrame) -> str:
    """A booktabs table; Kept and Moved are what cutting lists does."""
    heads = ["Data set", "", *(name for name, _ in COLUMNS.values())]
    body = []
    for name, title in DATASETS.items():
        for source, label in (("reproduced", "ours"), ("published", "thesis")):
            values = select(table, setting=f"lists-{name}", source=source)
            values = values.set_index("metric")["value"]
            cells = [
                f"{values[metric]:{form}}" if metric in values else "--"
                for metric, (_, form) in COLUMNS.items()
            ]
            body.append([title, label, *cells])
            title = ""
    return booktabs(heads, body, columns=f"ll{'r' * len(COLUMNS)}")

"""Tables 2 and 3 as proxies: a row per method, a column per measure, ours beside the printed."""

from collections.abc import Mapping

import pandas as pd

from papers.zhang2023.winners import METHODS
from twotowers.claims.statistics import compare
from twotowers.report.latex import booktabs

PROXY = "A proxy: a simulated store, not the Chrome Web Store, whose logs are proprietary."


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, measures: Mapping[str, str]
) -> pd.DataFrame:
    """One row per method, measure and source.

    Args:
        measures: From metrics to the headings of their columns.
    """
    measured = compare(
        results, published, ["method", "metric"], setting="webstore", metric=list(measures)
    )
    return measured.assign(note=PROXY)


def tex(table: pd.DataFrame, *, measures: Mapping[str, str], percent: bool = False) -> str:
    """A booktabs table, labelled a proxy.

    Args:
        percent: Whether numbers are changes in percent.
    """
    wide = table.pivot(index="method", columns=["metric", "source"], values="value")
    heads = " & ".join(rf"\multicolumn{{2}}{{c}}{{{name}}}" for name in measures.values())
    top = [rf"\multicolumn{{{1 + 2 * len(measures)}}}{{l}}{{{PROXY}}} \\", rf"method & {heads} \\"]
    body = []
    columns = [(metric, source) for metric in measures for source in ("reproduced", "published")]
    for method, name in METHODS.items():
        if method in wide.index:
            cells = (_number(wide.loc[method].get(column), percent) for column in columns)
            body.append([name, *cells])
    form = "l" + "rr" * len(measures)
    return booktabs(["", *("ours", "paper") * len(measures)], body, columns=form, above=top)


def _number(value: float | None, percent: bool) -> str:
    if value is None or pd.isna(value):
        return "--"
    return rf"{100 * value:+.2f}\,\%" if percent else f"{value:.4f}"

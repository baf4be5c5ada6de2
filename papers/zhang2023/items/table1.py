"""Table 1: a row per data set and policy, a column per method, ours above the printed.

Of tuned methods there is a row for each winner: by validation nDCG, and by validation clicks.
"""

from collections.abc import Sequence

import pandas as pd

from papers.zhang2023 import winners
from twotowers.claims.statistics import BAND, select
from twotowers.report.latex import booktabs

ROWS = ["dataset", "mixing_weight", "source", "chosen_by"]
KEYS = [*ROWS, "method", "metric"]


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    printed = select(published, setting=list(needs), metric="significant")
    datasets = dict.fromkeys(setting.split("-")[0] for setting in needs)
    marks = [_marks(results, dataset, by) for by in winners.CHOSEN_BY for dataset in datasets]
    printed = printed.assign(source="published", chosen_by="ndcg")
    parts = [winners.beside_printed(results, published, needs), printed, *marks]
    measured = pd.concat(parts, ignore_index=True)
    measured["dataset"], measured["method"] = zip(*measured["setting"].str.split("-"), strict=True)
    return measured[[*KEYS, *BAND]]


def _marks(results: pd.DataFrame, dataset: str, by: str) -> pd.DataFrame:
    """1 where a remedy is significantly better than PAL, else 0."""
    marks = winners.better_than_pal(results, dataset, by).gt(0).astype(float)
    marks = marks.rename(columns=f"{dataset}-{{}}".format).rename_axis("mixing_weight")
    long = marks.reset_index().melt("mixing_weight", var_name="setting")
    return long.assign(metric="significant", source="reproduced", chosen_by=by)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table; the best method of each row in bold, a star where one is marked."""
    heads = ["", "policy", "", *winners.METHODS.values()]
    body = []
    for dataset, name in winners.DATASETS.items():
        rows = select(table, dataset=dataset)
        if rows.empty:
            continue
        body += [r"\midrule"] * bool(body)
        for weight, policy in winners.POLICIES.items():
            for (source, by), label in winners.SOURCES.items():
                one = select(rows, mixing_weight=weight, source=source, chosen_by=by)
                body.append([name, policy, label, *_numbers(one)])
                name = policy = ""
    return booktabs(heads, body, columns=f"lll{'r' * len(winners.METHODS)}")


def _numbers(rows: pd.DataFrame) -> list[str]:
    values, marks = (
        select(rows, metric=metric).set_index("method")["value"]
        for metric in ("ndcg@5", "significant")
    )
    cells = []
    for method in winners.METHODS:
        if method not in values:
            cells.append("--")
            continue
        text = f"{values[method]:.4f}"
        text = rf"\textbf{{{text}}}" if values[method] == values.max() else text
        cells.append(text + ("$^{*}$" if marks.get(method, 0) else ""))
    return cells

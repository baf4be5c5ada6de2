"""All lanes of all settings: a LaTeX table of means, ours beside the published."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from twotowers.claims.statistics import compare
from twotowers.report.latex import booktabs


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    needs: Sequence[str],
    rows: Mapping[str, str],
    blocks: Mapping[str, Mapping[str, str]],
    columns: Sequence[Mapping],
) -> pd.DataFrame:
    """One row per lane, metric, position and source: mean and 95 % interval over seeds.

    Args:
        needs: What the item needs; of each a block, or several.
        rows: From lanes that make rows of a block to their headings.
        blocks: From lanes that make blocks of a setting to their values, and what these are called.
        columns: Heading, metric and, where a metric has any, position.
    """
    keys = ["setting", *rows, *blocks, "metric", "position"]
    tables = []
    for placed in (True, False):
        part = [column for column in columns if ("position" in column) == placed]
        where: dict = {"setting": list(needs), "metric": [column["metric"] for column in part]}
        if placed:
            where["position"] = [column["position"] for column in part]
        if part:
            tables.append(compare(results, published, keys, **where))
    return pd.concat(tables, ignore_index=True)


def tex(
    table: pd.DataFrame,
    *,
    needs: Sequence[str],
    rows: Mapping[str, str],
    blocks: Mapping[str, Mapping[str, str]],
    columns: Sequence[Mapping],
) -> str:
    """A booktabs longtable: a row per lane, two columns per metric, the published in grey."""
    wide = table.fillna({"position": 0}).pivot(
        index=["setting", *rows, *blocks], columns=["metric", "position", "source"], values="value"
    )
    cells = [
        (column["metric"], column.get("position", 0), source)
        for column in columns
        for source in ("reproduced", "published")
    ]
    pairs = [rf"\multicolumn{{2}}{{c}}{{{column['heading']}}}" for column in columns]
    above = " & ".join([*[""] * len(rows), *pairs]) + r" \\"
    width, body = len(rows) + len(cells), []
    for key in pd.MultiIndex.from_product([needs, *blocks.values()]):
        named = zip(["setting", *blocks], key, strict=True)
        lanes = wide
        for level, value in named:
            lanes = lanes[lanes.index.get_level_values(level) == value]
        if lanes.empty:
            continue
        names = [blocks[lane][value] for lane, value in zip(blocks, key[1:], strict=True)]
        title = ", ".join([rf"\emph{{{key[0]}}}", *names])
        body += [r"\addlinespace", rf"\multicolumn{{{width}}}{{l}}{{{title}}} \\*"]
        for lane, values in lanes.iterrows():
            heads = [f"${value:g}$" for value in lane[1 : 1 + len(rows)]]
            body.append([*heads, *(_number(values.get(c)) for c in cells)])
    heads = [*rows.values(), *["ours", "paper"] * len(columns)]
    return booktabs(heads, body, columns="r" * width, above=[above], long=True)


def _number(value: float | None) -> str:
    if value is None or pd.isna(value):
        return "--"
    return r"$\infty$" if np.isposinf(value) else f"${value:.3f}$"

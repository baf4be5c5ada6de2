"""A table of means with 95 % intervals, over annotated queries or else over seeds."""

from collections.abc import Mapping

import pandas as pd

from papers.dehaan2024.names import by_query, named
from twotowers.claims.statistics import from_moments, over_seeds, select
from twotowers.report.latex import booktabs

KEYS = ["setting", "metric"]


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    lines: Mapping[str, str],
    metrics: Mapping[str, str],
) -> pd.DataFrame:
    ours = over_seeds(select(named(results), setting=list(lines), metric=list(metrics)), KEYS)
    parts = [ours.assign(source="reproduced")]
    for metric in metrics:
        each = by_query(results, list(lines), metric)
        if each.empty:
            continue
        moments = each.agg(["mean", "std"]).T.set_axis(["value", "sd"], axis="columns")
        moments = moments.reset_index(names="setting").assign(metric=metric, n=len(each))
        parts[0] = parts[0][~((parts[0]["metric"] == metric) & parts[0]["setting"].isin(each))]
        parts.append(from_moments(moments, KEYS).assign(source="reproduced"))
    theirs = select(published, setting=list(lines), metric=list(metrics))
    parts.append(from_moments(theirs, KEYS).assign(source="published"))
    return pd.concat(parts, ignore_index=True)


def tex(table: pd.DataFrame, *, lines: Mapping[str, str], metrics: Mapping[str, str]) -> str:
    cells = table.set_index(["setting", "source", "metric"])
    body = []
    for setting, name in lines.items():
        for source, whose in (("reproduced", "ours"), ("published", "paper")):
            texts = [_written(cells, (setting, source, metric)) for metric in metrics]
            if source == "published" and set(texts) == {"--"}:
                continue
            body.append([name if source == "reproduced" else "", whose, *texts])
    return booktabs(["Model", "", *metrics.values()], body, columns="ll" + "r" * len(metrics))


def _written(cells: pd.DataFrame, key: tuple) -> str:
    if key not in cells.index:
        return "--"
    value, high = cells.loc[key, ["value", "high"]]
    half = f"{high - value:.4f}".removeprefix("0")
    # What no seed moves has no interval.
    return f"${value:.3f}$" if half in ("nan", ".0000") else rf"${value:.3f} \pm {half}$"

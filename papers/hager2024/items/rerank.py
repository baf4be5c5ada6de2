"""Tables 3.3 to 3.5: nine methods on one set of features, with the thesis's tests."""

from collections.abc import Mapping

import pandas as pd

from papers.hager2024.names import GROUPS, MARKS, METHODS, RANKERS
from papers.hager2024.significance import CHANGE, changes
from twotowers.claims.statistics import moments, select
from twotowers.report.drawings import moments as drawn


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, features: str, metrics: Mapping[str, str]
) -> pd.DataFrame:
    """One row per setting (with a prefix), metric, statistic (mean, sd, change) and source.

    A change is 1 or -1 where a mean is significantly higher or lower than that of the group's naive
    model, else 0.
    """
    settings = [*(RANKERS if features == "baidu" else ()), *(f"{features}-{m}" for m in METHODS)]
    theirs = select(published, setting=settings)
    rows = moments(
        select(results, setting=settings, metric=list(metrics)),
        select(theirs, metric=list(metrics)),
        ["setting", "metric"],
    )
    marks = theirs[theirs["metric"].str.endswith(CHANGE)]
    marks = marks.assign(metric=marks["metric"].str.removesuffix(CHANGE), source="published")
    ours = changes(results, features).assign(source="reproduced")
    changed = pd.concat([ours, marks])[["setting", "metric", "value", "source"]]
    return pd.concat([rows, changed.assign(statistic="change", n=1)], ignore_index=True)


def tex(table: pd.DataFrame, *, features: str, metrics: Mapping[str, str]) -> str:
    names = {f"{features}-{name}": title for name, title in METHODS.items()} | RANKERS
    blocks = [[f"{features}-{name}" for name in group] for group in GROUPS]
    blocks = [*([name] for name in RANKERS), *blocks] if features == "baidu" else blocks
    lines = [{names[name]: [name] for name in block} for block in blocks]
    return drawn.tex(table, rows=["setting"], blocks=lines, metrics=metrics, marks=MARKS)

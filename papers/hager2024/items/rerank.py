"""Tables 3.3 to 3.5: nine methods on one set of features, with the thesis's tests."""

from collections.abc import Mapping, Sequence

import pandas as pd

from papers.hager2024.names import GROUPS, MARKS, METHODS, RANKERS
from papers.hager2024.significance import CHANGE, changes
from twotowers.claims.moments import moments
from twotowers.claims.statistics import select
from twotowers.report.latex import booktabs, moment


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, features: str, metrics: Mapping[str, str]
) -> pd.DataFrame:
    """One row per setting (with a prefix), metric, statistic (mean, sd, change) and source.

    A change is 1 or -1 where a mean is significantly higher or lower than that of the group's naive
    model, else 0.
    """
    settings = _settings(features)
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
    cells = table.set_index(["setting", "source", "metric", "statistic"])["value"].to_dict()
    body, last = [], None
    for name in _settings(features):
        group = next(
            (group for group in GROUPS if name.removeprefix(f"{features}-") in group), None
        )
        if last is not None and group != last:
            body.append(r"\midrule")
        last = group or ()
        for source, whose in (("reproduced", "ours"), ("published", "paper")):
            texts = [whose]
            for metric in metrics:
                mean, sd, mark = (
                    cells.get((name, source, metric, what)) for what in ("mean", "sd", "change")
                )
                texts.append(moment(mean, sd) + MARKS.get(mark, ""))
            called = METHODS.get(name.removeprefix(f"{features}-"), RANKERS.get(name))
            body.append([called if source == "reproduced" else "", *texts])
    return booktabs(["Method", "", *metrics.values()], body, columns="ll" + "r" * len(metrics))


def _settings(features: str) -> Sequence[str]:
    first = list(RANKERS) if features == "baidu" else []
    return [*first, *(f"{features}-{name}" for name in METHODS)]

"""Propositions 1, 2 and 4, checked by simulation."""

import pandas as pd

from twotowers.claims.statistics import measured, over_seeds, whole
from twotowers.report.latex import booktabs, count, scientific

KEYS = ["proposition", "case", "clicks", "metric"]
VARIANCE = ["mean", "variance", "standard_error", "expected_variance"]
BOUND = ["checked", "violated", "tightest"]
BOUNDS = ("proposition 2", "proposition 4")


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    means = [measured(results, "propositions", proposition="proposition 1", metric=VARIANCE)]
    means += [measured(results, "propositions", proposition=name, metric=BOUND) for name in BOUNDS]
    summary = over_seeds(pd.concat(means, ignore_index=True), KEYS)
    return whole(summary, ["clicks"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    wide = table.pivot(index=KEYS[:3], columns="metric", values="value")
    variance = [
        [str(case), count(clicks), *(f"${scientific(row[metric], 4)}$" for metric in VARIANCE)]
        for (_, case, clicks), row in wide.loc[["proposition 1"]].iterrows()
    ]
    bounds = [
        [name.capitalize(), *map(count, row[BOUND[:2]]), f"${row['tightest']:.4f}$"]
        for name in BOUNDS
        for _, row in wide.loc[[name]].iterrows()
    ]
    left = booktabs(
        ["Case", "$N$", r"Mean of $\Omega$", "Variance", "Standard error", "Formula"],
        variance,
        columns="lrrrrr",
    )
    right = booktabs(
        ["", "Graphs checked", "Bound violated", "Largest error / bound"], bounds, columns="lrrr"
    )
    return left + "\n" + right

"""What was measured of theorems and lemmas: a LaTeX table, a number in each line."""

import pandas as pd

from twotowers.claims.statistics import measured, over_seeds
from twotowers.report.latex import booktabs, moment

KEYS = ["theorem", "components", "metric"]
NAMES = {
    "checked": "logs checked",
    "wrong": "with other than one constant per component",
    "difference": "largest difference of clicks",
    "mcc": "MCC",
    "ndcg@10": "nDCG@10",
    "click_mse": "click MSE",
    "tree": "largest contradiction along trees",
    "cycle": "least contradiction with one pair more",
    "other": "with other than K - 1 swaps",
    "apart": "left disconnected",
}
POWERS = ("difference", "click_mse", "tree", "cycle")
OFF = "off"
LEMMAS = {
    "lemma A.1": ("pair_apart", "pair_estimate"),
    "lemma A.2": ("independent", "estimate_finite"),
}
"""What was simulated, and what the lemma states, at every size of Example 2."""
EXAMPLE_1 = {
    "own-factors-constant": ("example 1, a ranker that says 1", ["click_mse"]),
    "own-factors": ("example 1, DLA", ["click_mse", "mcc"]),
}
"""Setting -> the name of its rows, and the metrics that the table shows."""


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    stated = [name for name in NAMES if name != "click_mse"]
    means = over_seeds(measured(results, "theorems", metric=stated), KEYS)
    sizes = measured(
        results, "example2", metric=[name for pair in LEMMAS.values() for name in pair]
    )
    wide = sizes.pivot_table(
        index=["feature_vectors", "bias_factors", "rows"], columns="metric", values="value"
    )
    lemmas = [
        (name, OFF, (wide[simulated] - wide[stated].clip(0, 1)).abs().max(), 1)
        for name, (simulated, stated) in LEMMAS.items()
    ]
    examples = [
        over_seeds(measured(results, setting, metric=metrics).assign(theorem=name), KEYS)
        for setting, (name, metrics) in EXAMPLE_1.items()
    ]
    off = pd.DataFrame(lemmas, columns=["theorem", "metric", "value", "n"])
    return pd.concat([means, *examples, off], ignore_index=True).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    body = []
    for row in table.itertuples():
        where = "" if pd.isna(row.components) else f", $K = {row.components}$"
        value = (
            f"{row.value:,.0f}"
            if row.metric in ("checked", "wrong", "other", "apart")
            else moment(row.value, digits=1 if row.metric in POWERS else 0)
        )
        name = NAMES.get(row.metric, "largest distance from simulation")
        body.append([f"{row.theorem[0].upper() + row.theorem[1:]}{where}", name, value])
    return booktabs(["Statement", "", ""], body, columns="llr")

"""How much another start of the bias parameters changes their estimates, by sessions."""

from collections.abc import Mapping

import pandas as pd

from papers.hager2025.stopping import changes, errors
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.drawings import counts

CHANGED = 0.1
METRICS = {
    "largest_change": "largest change", "positions_changed": "positions of 25 changed by over .1",
    "error_random": "largest error, random start", "error_zero": "zero start",
}  # fmt: skip
FORMS = dict.fromkeys(METRICS, ".3f") | {"positions_changed": ".1f"}


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, sessions: Mapping[str, int]
) -> pd.DataFrame:
    """One row per number of sessions, which `sessions` has by setting, and metric.

    `largest_change` is that of any position, `positions_changed` counts changes of more than .1,
    and the errors are the largest of any position, by start.
    """
    rows = []
    for setting, number in sessions.items():
        change = changes(results, setting).groupby("seed")
        bias = select(results, setting=setting, metric="position_bias", start=["random", "zero"])
        error = errors(bias)["value"].abs().groupby([bias["start"], bias["seed"]]).max()
        values = {
            "largest_change": change.max(),
            "positions_changed": change.agg(lambda each: (each > CHANGED).sum()),
            "error_random": error["random"],
            "error_zero": error["zero"],
        }
        rows += [
            {"sessions": number, "metric": metric, "seed": seed, "value": value}
            for metric in METRICS
            for seed, value in values[metric].items()
        ]
    return over_seeds(pd.DataFrame(rows), ["sessions", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame, *, sessions: Mapping[str, int]) -> str:
    rows = {"sessions": {number: f"{number:,}" for number in sessions.values()}}
    columns = {"metric": METRICS}
    return counts.tex(table, rows=rows, columns=columns, heading="sessions", forms=FORMS)

"""How much another start of the bias parameters changes their estimates, by sessions."""

from collections.abc import Mapping

import pandas as pd

from papers.hager2025.stopping import changes, errors
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

CHANGED = 0.1
METRICS = ("largest_change", "positions_changed", "error_random", "error_zero")


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
    cells = table.set_index(["sessions", "metric"])["value"]
    body = []
    for number in sessions.values():
        largest, count, *both = (cells[number, metric] for metric in METRICS)
        shown = [f"${value:.3f}$" for value in (largest, *both)]
        shown.insert(1, f"{count:.1f} of 25")
        body.append([f"{number:,}", *shown])
    heads = ["sessions", "largest change", "positions changed by more than .1"]
    heads += ["largest error, random start", "zero start"]
    return booktabs(heads, body, columns="rrrrr")

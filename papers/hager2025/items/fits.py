"""Errors of position bias and epochs trained, a row per fit and strength."""

from collections.abc import Mapping, Sequence

import pandas as pd

from papers.hager2025.stopping import errors
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

RANKS = (5, 10, 25)
KEYS = ["setting", "temperature", "strength", "metric", "position"]


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, rows: Sequence[Mapping]
) -> pd.DataFrame:
    """One row per fit, strength, metric and position: estimate minus truth, and epochs.

    Args:
        rows: of each fit its setting, the values of lanes that are shown, and a `title`.
    """
    parts = []
    for fit in rows:
        lanes = {column: value for column, value in fit.items() if column != "title"}
        values = select(results, **lanes)
        bias = select(values, metric="position_bias", position=RANKS)
        parts += [errors(bias).assign(metric="error"), select(values, metric="epochs")]
    return over_seeds(pd.concat(parts), KEYS).assign(source="reproduced")


def tex(table: pd.DataFrame, *, rows: Sequence[Mapping]) -> str:
    heads = ["fit", r"$\tau$", r"$\alpha$", *(f"err@{rank}" for rank in RANKS), "epochs"]
    body = []
    for fit in rows:
        where = {column: fit[column] for column in ("setting", "temperature")}
        of_fit = select(table, **where)
        for strength in sorted(of_fit["strength"].unique()):
            cells = select(of_fit, strength=strength)
            error = select(cells, metric="error").set_index("position")["value"]
            epochs = select(cells, metric="epochs")["value"]
            numbers = [f"${value:g}$" for value in (fit["temperature"], strength)]
            numbers += [f"${error[rank]:.3f}$" for rank in RANKS]
            numbers.append(f"{epochs.item():.0f}" if len(epochs) else "--")
            body.append([fit["title"], *numbers])
    return booktabs(heads, body, columns="lrrrrrr")

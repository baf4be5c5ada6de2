"""EM against gradient ascent, a row per model."""

from __future__ import annotations

import pandas as pd

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs, scientific

COLUMNS = {
    "gradient_difference": "gradients differ by",
    "step_difference": "steps differ by",
    "smallest_factor": "smallest factor",
    "end_difference": "ends differ by",
    "click_loss_difference": "ClickEMLoss differs by",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model and measure: mean over seeds."""
    rows = select(results, metric=list(COLUMNS))
    return over_seeds(rows, ["model", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    """A row per model."""
    wide = table.pivot(index="model", columns="metric", values="value")
    body = ([name.upper(), *map(_cell, row[list(COLUMNS)])] for name, row in wide.iterrows())
    return booktabs(["model", *COLUMNS.values()], body, columns="lrrrrr")


def _cell(value: float) -> str:
    """ClickEMLoss is PBM's alone."""
    return "--" if pd.isna(value) else f"${scientific(value, 2)}$"

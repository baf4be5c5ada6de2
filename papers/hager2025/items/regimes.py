"""Appendix A in numbers: what sums up each regime, overlap by documents and by features."""

from __future__ import annotations

import pandas as pd

from twotowers.claims.statistics import over_seeds, select
from twotowers.report.latex import booktabs

METRICS = {
    "components": "components",
    "largest_error": "largest error",
    "largest_error_within_component": "within a component",
    "largest_effect_of_start": "by another start",
}
REGIMES = (
    "connected", "content isolated", "content and device isolated", "isolated, with bridges",
    "isolated, features overlap", "isolated, features tell",
)  # fmt: skip


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per regime and metric: means over seeds."""
    rows = select(results, setting="appendix_a", metric=list(METRICS), regime=list(REGIMES))
    return over_seeds(rows, ["regime", "metric"]).assign(source="reproduced")


def tex(table: pd.DataFrame) -> str:
    """A row per regime."""
    cells = table.set_index(["regime", "metric"])["value"]
    body = []
    for regime in REGIMES:
        numbers = [f"{cells[regime, metric]:.3f}" for metric in METRICS]
        numbers[0] = f"{cells[regime, 'components']:g}"
        body.append([regime, *numbers])
    heads = ["regime", *METRICS.values()]
    return booktabs(heads, body, columns="l" + "r" * len(METRICS))

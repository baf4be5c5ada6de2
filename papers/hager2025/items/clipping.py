"""What the well-specified linear model still feels of the policy.

To be seen beyond the caption: on the first ranks curves fan out to opposite sides at alpha 1 and
-1, as under misspecification.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twotowers.report.figures import (
    TRUTH,
    draw_curves,
    panels,
    shared_legend,
    style,
    temperature_look,
)
from twotowers.results.statistics import over_seeds, select

VARIANTS = {
    "as published": "As published",
    "without noise": "Without noise",
    "without clipping": "Without clipping",
    "without either": "Without either",
}
POSITIONS = (5, 10)


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, strength, temperature and position: estimate minus truth."""
    keys = ["variant", "strength", "temperature", "metric", "position"]
    rows = select(results, setting="clipping", variant=list(VARIANTS), metric="position_bias")
    errors = rows["value"] + np.log(rows["position"].astype(float))
    rows = rows.assign(value=errors, metric="position_bias_error")
    return over_seeds(rows, keys).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """A column per variant, a row per strength: error by rank, one curve per temperature."""
    strengths = sorted(table["strength"].unique(), reverse=True)
    with style():
        figure, axes = panels(len(VARIANTS), rows=len(strengths), panel_height=1.6)
        for column, (variant, title) in zip(axes.T, VARIANTS.items(), strict=True):
            rows = select(table, variant=variant)
            column[0].set_title(title)
            column[0].text(
                0.04, 0.96, spread(rows), transform=column[0].transAxes, va="top", fontsize=6.5
            )
            for panel, strength in zip(column, strengths, strict=True):
                _error_panel(panel, select(rows, strength=strength))
        for row, strength in zip(axes, strengths, strict=True):
            row[0].set_ylabel(f"α = {strength:g}\nestimate − truth".replace("-", "−"))
        shared_legend(figure)
    return figure


def spread(rows: pd.DataFrame) -> str:
    """How far the policies' estimates lie apart, in words."""
    at = {k: np.ptp(select(rows, position=k)["value"]) for k in POSITIONS}
    return "spread over policies\n" + "\n".join(f"{s:.3f} at rank {k}" for k, s in at.items())


def _error_panel(axes: Axes, rows: pd.DataFrame) -> None:
    draw_curves(axes, rows, x="position", group="temperature", look=temperature_look)
    axes.axhline(0, label="truth", **TRUTH)
    axes.set_xticks([1, 5, 10, 15, 20, 25])
    axes.set_xlabel("Rank")

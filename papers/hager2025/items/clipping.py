"""What the well-specified linear model still feels of the policy.

To be seen beyond the caption: on the first ranks curves fan out to opposite sides at alpha 1 and
-1, as under misspecification.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.stopping import errors
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Curves, ranks, symbols, with_truth

VARIANTS = {
    "as published": "As published",
    "without noise": "Without noise",
    "without clipping": "Without clipping",
    "without either": "Without either",
}
POSITIONS = (5, 10)


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    keys = ["variant", "strength", "temperature", "metric", "position"]
    rows = select(results, setting="clipping", variant=list(VARIANTS), metric="position_bias")
    return over_seeds(errors(rows), keys).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    strengths = symbols("α", table["strength"])
    chart = Curves(
        with_truth(table, ["variant", "strength", "position"], lambda at: 0.0),
        by={"temperature": symbols("τ", table["temperature"])},
        col={"variant": VARIANTS},
        row={"strength": dict(reversed(strengths.items()))},
    )
    plot = ranks(chart.plot("position"), table["position"].max()).label(y="estimate − truth")
    figure = chart.figure(plot, height=1.6)
    for panel, variant in zip(figure.axes, VARIANTS, strict=False):
        text = spread(select(table, variant=variant))
        panel.text(0.04, 0.96, text, transform=panel.transAxes, va="top", fontsize=6.5)
    return figure


def spread(rows: pd.DataFrame) -> str:
    """How far the policies' estimates lie apart, in words."""
    at = {k: np.ptp(select(rows, position=k)["value"]) for k in POSITIONS}
    return "spread over policies\n" + "\n".join(f"{s:.3f} at rank {k}" for k, s in at.items())

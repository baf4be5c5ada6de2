"""Perplexity of held-out clicks of ten click models, with percentiles over draws of the log."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import over_draws, select
from twotowers.models.names import MODELS
from twotowers.report.drawings.dots import on_lines

METRICS = {"mean_perplexity": "Perplexity", "mean_conditional_perplexity": "Conditional perplexity"}
BASE = "ten-ubm"


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model and metric; and the same less BASE, within each draw."""
    rows = select(results, setting=[f"ten-{name}" for name in MODELS], metric=list(METRICS))
    base = select(rows, setting=BASE).set_index(["metric", "seed"])["value"]
    theirs = base.loc[pd.MultiIndex.from_frame(rows[["metric", "seed"]])].to_numpy()
    less = rows.assign(value=rows["value"] - theirs, metric=rows["metric"] + "_less_base")
    less = less[less["setting"] != BASE]
    both = pd.concat([rows, less])
    return over_draws(both, ["setting", "metric"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """A panel per metric, a line per model."""
    lines = {"setting": {f"ten-{name}": name.upper() for name in MODELS}}
    rows = table[(table["setting"] != "ten-cm") | (table["metric"] == "mean_perplexity")]
    by = {"voice": {"ours": "counting or EM"}}
    interval = "2.5 to 97.5 percentile"
    return on_lines(rows.assign(voice="ours"), lines, by=by, metrics=METRICS, interval=interval)

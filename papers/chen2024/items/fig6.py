"""Examination by position as DLA estimates it, with and without merging (Appendix D.1)."""

import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.figure import Figure

from papers.chen2024.models.eye_tracking import EXAMINATION, POSITIONS
from twotowers.claims.statistics import measured, moments, runs, select, with_most
from twotowers.report.charts import TRUTH, Dots, ticks

KEYS = ["components", "method", "repair", "views", "metric", "position"]
NUMBERS = (2, 3, 4)
ORDER = {"method": ["rate_dla", "truth"], "repair": ["plain", "merging"]}
REPAIRS = {"plain": "DLA, no repair", "merging": "node merging"}


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: list[str]) -> pd.DataFrame:
    where = {"method": "rate_dla", "repair": list(REPAIRS), "components": list(NUMBERS)}
    values = with_most(measured(results, needs, **where, metric="position_bias"), "views")
    values = values.assign(metric="examination", value=np.exp(values["value"]))
    truth = values.drop_duplicates(["components", "position"]).assign(
        method="truth",
        repair="truth",
        value=lambda cells: (EXAMINATION / EXAMINATION[0])[cells["position"].astype(int) - 1],
    )
    ours = pd.concat([values, truth], ignore_index=True)
    return pd.concat(
        [moments(ours, published.iloc[:0], KEYS, ORDER), runs(values, KEYS)], ignore_index=True
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel per K: boxes over runs per position, and the truth."""
    each = table["statistic"].str.startswith("run ")
    truth = select(table, method="truth", statistic="mean")
    # An examination of 0 has no place on this axis.
    rows = pd.concat([table[each & (table["value"] > 0)], truth.assign(source="truth")])
    rows = rows.assign(place=rows["position"] - 1)
    numbers = {number: f"K = {number}" for number in NUMBERS}
    chart = Dots(rows, by={"repair": REPAIRS}, col={"components": numbers})
    plot = chart.bare(x="place", y="reproduced").scale(
        x=ticks(range(POSITIONS)), y=so.Continuous(trans="log").label(like="{x:g}")
    )
    for line, share in ({"linewidth": 5, "alpha": 0.35}, 50), ({"linewidth": 0.9}, 100):
        quartiles = so.Est("median", errorbar=("pi", share))
        plot = plot.add(so.Range(**line), quartiles, so.Dodge(), marker=None, legend=False)
    plot = plot.add(so.Dash(), so.Agg("median"), so.Dodge(), marker=None, legend=False)
    black = {"color": None, "marker": None}
    plot = plot.add(so.Line(**TRUTH), y="truth", legend=False, **black)
    names = {"x": "Position (the first is 0, as printed)", "y": "Examination relative to the first"}
    return chart.figure(plot.label(**names), height=2.5)

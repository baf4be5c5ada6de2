"""How often the identifiability graph is connected, along one of three sweeps of a data set."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from twotowers.claims.statistics import frequency_interval, measured, select
from twotowers.report.charts import BAND_ALPHA, PUBLISHED, Curves
from twotowers.report.figures import COLUMN_WIDTH, GREY

DATASETS = {"yahoo": "Yahoo!", "istella_s": "Istella-S"}
PARTS = {"": "", ">": "_low", "<": "_high"}
"""What is added to the metric of a printed number, by what it bounds."""


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, dataset: str, sweep: str
) -> pd.DataFrame:
    """A row per amount and source, over all draws, of a sweep of contexts, sampling or features.

    The metric `connected` is a frequency with its 95 % interval (Wilson's). Its summary has no
    amount. It is `connected_from` in the sampling sweep, the least share from which on every draw
    is connected, and `disconnected_from` in the others, the least amount at which most draws are
    disconnected. The printed summaries are the numbers of the running text; of a printed range its
    ends are connected_from and so on with '_low' and '_high'.
    """
    setting = f"connectivity-{dataset}"
    draws = measured(results, setting, dataset=dataset, sweep=sweep, metric="connected")
    counts = draws.groupby("amount")["value"].agg(["sum", "size"]).reset_index()
    low, high = frequency_interval(counts["sum"], counts["size"])
    value = counts["sum"] / counts["size"]
    name, summary = _turn(sweep, counts["amount"].to_numpy(), value.to_numpy())
    curve = pd.DataFrame({"amount": counts["amount"].astype(float), "value": value})
    curve = curve.assign(metric="connected", low=low, high=high, n=counts["size"])
    turn = pd.DataFrame({"metric": [name], "value": [summary], "n": [len(draws)]})
    ours = [each.assign(source="reproduced") for each in (curve, turn.dropna(subset="value"))]
    theirs = select(published, setting=setting, sweep=sweep)
    bounds = theirs["metric"] + theirs["bound"].map(PARTS)
    theirs = theirs[["value", "n"]].assign(metric=bounds, source="published")
    table = pd.concat([*ours, theirs], ignore_index=True).assign(dataset=dataset, sweep=sweep)
    return table[["dataset", "sweep", "amount", "metric", "value", "low", "high", "n", "source"]]


def _turn(sweep: str, amounts: np.ndarray, connected: np.ndarray) -> tuple[str, float]:
    """Where the graph starts, or ceases, to be connected; NaN where it does not."""
    if sweep == "sampling":
        always = np.logical_and.accumulate(connected[::-1] == 1)[::-1]
        return "connected_from", amounts[always].min(initial=np.inf) if always.any() else np.nan
    mostly_not = connected < 0.5
    return "disconnected_from", amounts[mostly_not].min() if mostly_not.any() else np.nan


def draw(table: pd.DataFrame, *, dataset: str, sweep: str, xlabel: str) -> Figure:
    """One panel: frequency of a connected graph against the amount, and what the text says of it.

    The axis is logarithmic; an amount of 0, positions without contexts, stands at its left end.
    """
    curve = select(table, metric="connected")
    printed = select(table, source="published")["value"]
    chart = Curves(curve, by={"dataset": DATASETS})
    plot = chart.plot("amount").limit(y=(-0.03, 1.03))
    plot = plot.label(x=xlabel, y="Frequency of connection")
    also = [Patch(**ZONE)] if len(printed) else []
    figure = chart.figure(plot, width=COLUMN_WIDTH, height=1.85, also=also)
    axes = figure.axes[0]
    # A zone, which is a line for a single number, where the text says that the graph changes.
    if len(printed):
        axes.axvspan(printed.min(), printed.max(), **ZONE)
    _amount_axis(axes, np.sort(curve["amount"].to_numpy(float)), percent=sweep == "sampling")
    return figure


ZONE = {"facecolor": (GREY, BAND_ALPHA), "edgecolor": GREY, "label": "published"}
ZONE |= {name: PUBLISHED[name] for name in ("linewidth", "linestyle")}


def _amount_axis(axes: Axes, amounts: np.ndarray, *, percent: bool) -> None:
    positive = amounts[amounts > 0]
    if len(positive) < len(amounts):
        axes.set_xscale("symlog", linthresh=positive.min(), linscale=0.5)
        axes.set_xlim(-0.3 * positive.min(), 1.3 * positive.max())
    else:
        axes.set_xscale("log")
    # Five labels at most, evenly: as many as a column's width has room for.
    shown = [amounts[0]]
    gap = np.ptp(np.log10(positive)) / 4 - 1e-9
    for amount in positive:
        if shown[-1] <= 0 or np.log10(amount / shown[-1]) >= gap:
            shown.append(amount)
    names = [f"{100 * amount:g} %" if percent else f"{amount:,g}" for amount in shown]
    axes.set_xticks(shown, names)
    axes.xaxis.set_minor_locator(NullLocator())

"""How often the identifiability graph is connected, along one of three sweeps of a data set."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from papers.chen2024.looks import INTERVENTION, MERGING
from twotowers.report.figures import BAND_ALPHA, COLUMN_WIDTH, GREY, PUBLISHED, REPRODUCED, style
from twotowers.results.moments import measured
from twotowers.results.statistics import frequency_interval, select

DATASETS = {"yahoo": ("Yahoo!", INTERVENTION), "istella_s": ("Istella-S", MERGING)}
PARTS = {"": "", ">": "_low", "<": "_high"}
"""What is added to the metric of a printed number, by what it bounds."""


def table(
    results: pd.DataFrame, published: pd.DataFrame, *, dataset: str, sweep: str
) -> pd.DataFrame:
    """A row per amount and source, over all draws.

    Args:
        dataset: Of DATASETS.
        sweep: contexts, sampling or features.

    Returns:
        Columns dataset, sweep, amount, metric, value, low, high, n (draws), source. Metric
        connected is a frequency with its 95 % interval (Wilson's); its summary, without an
        amount, is connected_from (of the sampling sweep: the least share from which on every
        draw is connected) or disconnected_from (of the others: the least amount at which most
        draws are disconnected). The printed summaries are the numbers of the running text; of
        a printed range its ends are connected_from and so on with '_low' and '_high'.
    """
    setting = f"connectivity-{dataset}"
    draws = measured(results, setting, dataset=dataset, sweep=sweep, metric="connected")
    counts = draws.groupby("amount")["value"].agg(["sum", "size"]).reset_index()
    low, high = frequency_interval(counts["sum"], counts["size"])
    value = counts["sum"] / counts["size"]
    name, summary = _turn(sweep, counts["amount"].to_numpy(), value.to_numpy())
    theirs = select(published, setting=setting, sweep=sweep)
    parts = [
        pd.DataFrame(
            {
                "amount": counts["amount"].astype(float),
                "metric": "connected",
                "value": value,
                "low": low,
                "high": high,
                "n": counts["size"],
                "source": "reproduced",
            }
        ),
        pd.DataFrame(
            {"metric": [name], "value": [summary], "n": [len(draws)], "source": ["reproduced"]}
        ).dropna(subset="value"),
        theirs[["value", "n"]].assign(
            metric=theirs["metric"] + theirs["bound"].map(PARTS),
            source="published",
        ),
    ]
    table = pd.concat(parts, ignore_index=True).assign(dataset=dataset, sweep=sweep)
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
    curve = select(table, metric="connected").sort_values("amount")
    title, look = DATASETS[dataset]
    with style():
        figure = Figure(figsize=(COLUMN_WIDTH, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.plot(
            curve["amount"], curve["value"], color=look.colour, marker=look.marker,
            markeredgecolor="white", markeredgewidth=0.4, label="reproduced", **REPRODUCED,
        )  # fmt: skip
        axes.fill_between(
            curve["amount"], curve["low"], curve["high"], color=look.colour, alpha=BAND_ALPHA,
            linewidth=0, label="95 % interval",
        )  # fmt: skip
        _printed_turn(axes, select(table, source="published"))
        _amount_axis(axes, curve["amount"].to_numpy(float), percent=sweep == "sampling")
        axes.set(ylim=(-0.03, 1.03), xlabel=xlabel, ylabel="Frequency of connection")
        axes.set_title(title)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


def _printed_turn(axes: Axes, printed: pd.DataFrame) -> None:
    """A line, or for a range a zone, where the text says that the graph changes."""
    if len(printed) == 1:
        axes.axvline(printed["value"].item(), color=GREY, label="published", **PUBLISHED)
    elif len(printed) == 2:
        ends = printed["value"].min(), printed["value"].max()
        axes.axvspan(*ends, color=GREY, alpha=BAND_ALPHA, linewidth=0, label="published")


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

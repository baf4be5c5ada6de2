"""What the items of this paper share: which rows they take, and panels in the paper's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from twotowers.errors import InputError
from twotowers.report.figures import (
    BAND_ALPHA,
    COLUMN_WIDTH,
    GREY,
    PUBLISHED,
    REPRODUCED,
    Look,
    panels,
    shared_legend,
    style,
)
from twotowers.results.statistics import frequency_interval, from_moments, over_seeds, select

METHODS = {
    ("naive", "plain"): "No debias",
    ("dla", "plain"): "DLA",
    ("dla", "intervention"): "+ Node intervention",
    ("dla", "merging"): "+ Node merging",
    ("regression_em", "plain"): "Regression-EM",
    ("regression_em", "intervention"): "+ Node intervention",
    ("regression_em", "merging"): "+ Node merging",
    ("two_tower", "plain"): "Two-Tower",
    ("two_tower", "intervention"): "+ Node intervention",
    ("two_tower", "merging"): "+ Node merging",
}
"""Method and variant, in the order of Table 1, and their names there."""

DATASETS = {"yahoo": "Yahoo!", "istella_s": "Istella-S"}
MEASURES = {"mcc": "MCC", "ndcg@5": "nDCG@5"}
"""What the figures draw, and the labels of their axes."""

COMPONENTS = {
    1: Look("#000000", "o", "K = 1 (connected)"),
    2: Look("#0072B2", "s", "K = 2"),
    3: Look("#009E73", "^", "K = 3"),
    4: Look("#D55E00", "D", "K = 4"),
}
UNREPAIRED = Look(GREY, "v", "DLA, no repair")
INTERVENTION = Look("#0072B2", "o", "node intervention")
MERGING = Look("#D55E00", "s", "node merging")

POSITION = "Position (the first is 0, as printed)"
_WHOLE = ("components", "clicks", "feature_vectors", "bias_factors", "rows", "other")
_STATISTICS = {"": "mean", "<": "upper bound", ">": "lower bound"}


def rows(results: pd.DataFrame, setting: str, **where) -> pd.DataFrame:
    """A study's rows with the wanted value, or values, in every named column.

    Raises:
        InputError: the study lacks a column, or any of the values.
    """
    found = select(results, setting=setting)
    for column, wanted in where.items():
        if column not in found or found[column].isna().all():
            raise InputError(f"study {setting!r} has no such results", field=column)
        present = found[column].dropna().unique()
        found = select(found, **{column: wanted})
        several = not isinstance(wanted, str) and isinstance(wanted, Sequence)
        for value in wanted if several else [wanted]:
            if select(found, **{column: value}).empty:
                raise InputError(
                    f"study {setting!r} has no results for {value!r}",
                    field=column,
                    expected=f"one of {', '.join(map(repr, sorted(present)))}",
                )
    return found


def most_clicks(results: pd.DataFrame) -> pd.DataFrame:
    """The rows with the largest number of clicks: 1,000,000 at the paper's own scale."""
    return results[results["clicks"] == results["clicks"].max()]


def moments(results: pd.DataFrame, published: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Mean and standard deviation over runs, each in a row of its own, and the printed ones.

    Args:
        results: Long form, one row per run (seed) and combination of `keys`.
        published: Long form with value, sd, n and bound; it may be empty.
        keys: The key columns, among them method and variant if rows are to be in printed order.

    Returns:
        Columns `keys`, statistic, value, low, high, n, source. The statistic is 'mean' (with its
        95 % interval), 'sd', or 'upper bound' or 'lower bound' where only that is printed.
    """
    keys = list(keys)
    mean = over_seeds(results, keys)
    spread = results.groupby(keys, dropna=False)["value"].agg(value="std", n="size").reset_index()
    parts = [
        mean.assign(statistic="mean", source="reproduced"),
        spread.dropna(subset="value").assign(statistic="sd", source="reproduced"),
    ]
    if len(published):
        printed = published.assign(statistic=published["bound"].map(_STATISTICS))
        named = [*keys, "statistic"]
        parts += [
            from_moments(printed, named).assign(source="published"),
            printed.dropna(subset="sd")
            .drop(columns="value")
            .rename(columns={"sd": "value"})[[*keys, "value", "n"]]
            .assign(statistic="sd", source="published"),
        ]
    table = pd.concat(parts, ignore_index=True)
    table = table[[*keys, "statistic", "value", "low", "high", "n", "source"]]
    return _in_printed_order(counted(table))


def runs(results: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Each run's own value, in the columns of `moments`; the statistic is 'run' and its seed."""
    table = results[[*keys, "seed", "value"]].assign(
        statistic="run " + results["seed"].astype(str),
        low=np.nan,
        high=np.nan,
        n=1,
        source="reproduced",
    )
    return counted(table.drop(columns="seed"))


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """Lanes that count something as integers, though some rows of the study lack them."""
    return table.astype({name: "Int64" for name in _WHOLE if name in table})


def _in_printed_order(table: pd.DataFrame) -> pd.DataFrame:
    if not {"method", "variant"} <= set(table.columns):
        return table
    order = {pair: place for place, pair in enumerate(METHODS)}
    pairs = zip(table["method"], table["variant"], strict=True)
    place = [order.get(pair, len(order)) for pair in pairs]
    return table.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def draw_sweep(
    table: pd.DataFrame, *, x: str, group: str, looks: Mapping[object, Look], xlabel: str
) -> Figure:
    """Two panels, MCC and nDCG@5 against `x`: means, whiskers of one standard deviation over runs.

    Args:
        table: The rows of `moments`.
        x: The swept column; clicks are drawn on a logarithmic scale.
        group: The column that tells curves apart, drawn side by side in the order of `looks`.
    """
    columns = [group, x, "metric", "source"]
    points = table.pivot(index=columns, columns="statistic", values="value")
    points = points.reindex(columns=["mean", "sd"]).reset_index()
    points["at"] = np.log10(points[x].astype(float)) if x == "clicks" else points[x].astype(float)
    with style():
        figure, axes = panels(len(MEASURES), panel_height=2.35)
        for panel, (metric, name) in zip(axes.flat, MEASURES.items(), strict=True):
            _spread_panel(panel, select(points, metric=metric), group, looks)
            panel.set_title(name)
            panel.set_xlabel(xlabel)
            ticks = points[[x, "at"]].drop_duplicates()
            panel.set_xticks(
                ticks["at"], [_power(v) if x == "clicks" else f"{v}" for v in ticks[x]]
            )
        axes[0, 0].set_ylabel("Mean over runs")
        shared_legend(figure)
    return figure


def _spread_panel(axes: Axes, points: pd.DataFrame, group: str, looks: Mapping) -> None:
    drawn = [value for value in looks if (points[group] == value).any()]
    dodge = 0.09 * (np.arange(len(drawn)) - (len(drawn) - 1) / 2)
    whisker = {"capsize": 2, "elinewidth": 0.9, "capthick": 0.9}
    beside = dodge.max(initial=0)
    for offset, value in zip(dodge, drawn, strict=True):
        look, curve = looks[value], points[points[group] == value].sort_values("at")
        ours, theirs = (select(curve, source=source) for source in ("reproduced", "published"))
        axes.errorbar(
            ours["at"] + offset, ours["mean"], yerr=ours["sd"].fillna(0), color=look.colour,
            marker=look.marker, markeredgecolor="white", markeredgewidth=0.4, label=look.label,
            **REPRODUCED, **whisker,
        )  # fmt: skip
        beside += 0.09 * (len(theirs) > 0)
        axes.errorbar(
            theirs["at"] + beside, theirs["mean"], yerr=theirs["sd"].fillna(0),
            color=look.muted, marker=look.marker, markerfacecolor="white", markersize=3.6,
            linestyle="none", zorder=2, **whisker,
        )  # fmt: skip
    axes.errorbar(
        [], [], yerr=[], color=GREY, linestyle="none", label="± 1 sd over runs", **whisker
    )
    if (points["source"] == "published").any():
        axes.plot([], [], "o", color=GREY, markerfacecolor="white", markersize=3.6,
                  label="published")  # fmt: skip


def _power(number: int) -> str:
    exponent = round(np.log10(number))
    return rf"$10^{{{exponent}}}$" if exponent > 1 and number == 10**exponent else f"{number:g}"


def connection_table(
    results: pd.DataFrame, published: pd.DataFrame, *, dataset: str, sweep: str
) -> pd.DataFrame:
    """How often the identifiability graph is connected, by the swept amount, over all draws.

    Returns:
        Columns dataset, sweep, amount, metric, value, low, high, n (draws), source. Metric
        connected is a frequency with its 95 % interval (Wilson's); its summary, without an
        amount, is connected_from (of the sampling sweep: the least share from which on every
        draw is connected) or disconnected_from (of the others: the least amount at which most
        draws are disconnected). The printed summaries are the numbers of the running text; of
        a printed range its ends are connected_from and so on with '_low' and '_high'.
    """
    setting = f"connectivity-{dataset}"
    draws = rows(results, setting, dataset=dataset, sweep=sweep, metric="connected")
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
            metric=theirs["metric"] + theirs["bound"].map({"": "", ">": "_low", "<": "_high"}),
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


def draw_connection(table: pd.DataFrame, *, xlabel: str) -> Figure:
    """One panel: frequency of a connected graph against the amount, and what the text says of it.

    The axis is logarithmic; an amount of 0, positions without contexts, stands at its left end.
    """
    curve = select(table, metric="connected").sort_values("amount")
    dataset, sweep = table["dataset"].iloc[0], table["sweep"].iloc[0]
    with style():
        figure = Figure(figsize=(COLUMN_WIDTH, 2.4), layout="constrained")
        axes = figure.subplots()
        look = MERGING if dataset == "istella_s" else INTERVENTION
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
        axes.set_title(DATASETS[dataset])
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

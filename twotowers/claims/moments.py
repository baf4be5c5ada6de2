"""Means and standard deviations over runs, ours and the printed ones.

`moments` is for papers that print a mean and a standard deviation over runs, and gives each of them
a row. `twotowers.claims.statistics.compare` is for means with their intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from twotowers.claims.statistics import from_moments, over_seeds, select
from twotowers.errors import InputError

STATISTICS = {"": "mean", "<": "upper bound", ">": "lower bound"}
"""The statistic of a printed number, by its column `bound`."""


def measured(results: pd.DataFrame, settings: str | Sequence[str], **where) -> pd.DataFrame:
    """The rows of some settings or studies that have a wanted value in each given column."""
    settings = [settings] if isinstance(settings, str) else list(settings)
    for name in settings:
        rows = select(results, setting=name)
        for column in where:
            if column not in rows or rows[column].isna().all():
                raise InputError(f"{name!r} has no results with this column", field=column)
    chosen, names = select(results, setting=settings), ", ".join(map(repr, settings))
    for column, wanted in where.items():
        present = chosen[column].dropna().unique()
        chosen = select(chosen, **{column: wanted})
        several = not isinstance(wanted, str) and isinstance(wanted, Sequence)
        for value in wanted if several else [wanted]:
            if select(chosen, **{column: value}).empty:
                raise InputError(
                    f"no results of {names} for {value!r}",
                    field=column,
                    expected=f"one of {', '.join(map(repr, sorted(present)))}",
                )
    return chosen


def with_most(results: pd.DataFrame, lane: str | None) -> pd.DataFrame:
    """The rows with the largest value of a lane, or all rows if no lane is named."""
    return results if lane is None else results[results[lane] == results[lane].max()]


def moments(
    results: pd.DataFrame,
    published: pd.DataFrame,
    keys: Sequence[str],
    order: Mapping[str, Sequence] | None = None,
) -> pd.DataFrame:
    """Mean and standard deviation over runs (seeds), ours and the printed ones, with a row each.

    Columns `keys`, statistic, value, low, high, n, source. The statistic is 'mean' (with its 95 %
    interval), 'sd', or 'upper bound' or 'lower bound' if only a bound is printed. `order` has a
    key's values in the order of rows; others come last.
    """
    keys = list(keys)
    mean = over_seeds(results, keys)
    spread = results.groupby(keys, dropna=False)["value"].agg(value="std", n="count").reset_index()
    parts = [
        mean.assign(statistic="mean", source="reproduced"),
        spread.dropna(subset="value").assign(statistic="sd", source="reproduced"),
    ]
    if len(published):
        printed = published.assign(statistic=published["bound"].map(STATISTICS))
        parts += [
            from_moments(printed, [*keys, "statistic"]).assign(source="published"),
            printed.dropna(subset="sd")
            .drop(columns="value")
            .rename(columns={"sd": "value"})[[*keys, "value", "n"]]
            .assign(statistic="sd", source="published"),
        ]
    table = whole(pd.concat(parts, ignore_index=True), keys)
    table = table[[*keys, "statistic", "value", "low", "high", "n", "source"]]
    for column, values in reversed((order or {}).items()):
        places = table[column].map({value: place for place, value in enumerate(values)})
        table = table.iloc[np.argsort(places.fillna(len(values)), kind="stable")]
    return table.reset_index(drop=True)


def runs(results: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The value of each run, in the columns of `moments`. The statistic is 'run' and the seed."""
    table = results[[*keys, "value"]].assign(
        statistic="run " + results["seed"].astype(str),
        low=np.nan,
        high=np.nan,
        n=1,
        source="reproduced",
    )
    return whole(table, keys)


def whole(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The table with integers in key columns whose numbers are all whole.

    pandas turns the integers of a lane into floats if some rows have no value of the lane.
    """
    numbers = [name for name in keys if pd.api.types.is_float_dtype(table[name])]
    integers = [name for name in numbers if (table[name].dropna() % 1 == 0).all()]
    return table.astype(dict.fromkeys(integers, "Int64"))

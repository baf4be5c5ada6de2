"""Selections of long-form results, and means with 95 % intervals over seeds.

A result is a pandas DataFrame with a row per measured number: descriptive columns (setting,
strength, temperature, metric, position, ...), a column `seed` and a column `value`. Published
results have no seeds. Their rows have the mean (`value`), `sd` and `n`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr  # importing scipy.stats is slow

from twotowers.intervals import interval, quantile

BAND = ["value", "low", "high", "n"]
"""Columns of a summary over seeds: mean, both ends of the interval, number of seeds."""


def mean_interval(
    mean: ArrayLike, sd: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Student's t interval of a mean: mean +- t(n - 1) sd / sqrt(n), with the sample's sd.

    NaN for a single observation or a missing sd.
    """
    mean, sd, n = (np.asarray(array, dtype=float) for array in (mean, sd, n))
    freedom = np.where(n > 1, n - 1, np.nan)
    return interval(mean, sd / np.sqrt(np.maximum(n, 1)), freedom, level=level)


def frequency_interval(
    successes: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a probability (Wilson 1927), of n >= 1 independent trials."""
    successes, n = np.asarray(successes, float), np.asarray(n, float)
    z = quantile(level=level)
    middle = (successes + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(successes * (n - successes) / n + z**2 / 4)
    # The ends 0 and 1 are exact. The formula misses them by a rounding error.
    return np.where(successes > 0, middle - half, 0), np.where(successes < n, middle + half, 1)


def paired_p(one: ArrayLike, other: ArrayLike) -> float:
    """Two-sided p-value of Student's paired t test, with equal means as the null hypothesis.

    If all differences, of two pairs at least, are the same number, it is 1 for 0 and 0 for another.
    """
    difference = np.asarray(one, float) - np.asarray(other, float)
    n, sd = len(difference), difference.std(ddof=1)
    if not sd:
        return 1.0 if not difference.any() else 0.0
    return float(2 * stdtr(n - 1, -abs(difference.mean()) / (sd / np.sqrt(n))))


def over_seeds(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean and 95 % interval over seeds, by columns: value, low, high, n.

    Seeds whose value is NaN do not count.
    """
    by = list(by)
    if results.duplicated([*by, "seed"]).any():
        raise ValueError(
            f"a seed occurs twice in a group of {by}: add the column in which the rows differ"
        )
    grouped = results.groupby(by, dropna=False, sort=True)["value"]
    moments = grouped.agg(value="mean", sd="std", n="count").reset_index()
    return from_moments(moments, by)


def from_moments(moments: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The summary of `over_seeds`, from columns value (the mean), sd and n."""
    low, high = mean_interval(moments["value"], moments["sd"], moments["n"])
    summary = moments[[*by, "value"]].assign(low=low, high=high, n=moments["n"].astype(int))
    return summary.sort_values(list(by), ignore_index=True)


def without_levels(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Remove the seeds' levels: value - mean of the seed + mean of the group, in each group.

    Means over seeds stay the same, and their intervals become those of differences between
    conditions (Cousineau's within-subject interval). Use it if a seed also draws the task, for
    example a synthetic relevance function. Then all conditions of a seed share its level, which
    would hide their differences. Every seed must have the same rows in a group.
    """
    level = results.groupby([*by, "seed"], dropna=False)["value"].transform("mean")
    middle = results.groupby(list(by), dropna=False)["value"].transform("mean")
    return results.assign(value=results["value"] - level + middle)


def compare(
    results: pd.DataFrame, published: pd.DataFrame, by: Sequence[str], **where
) -> pd.DataFrame:
    """Reproduced and published means of the same selection, with their intervals, in one table.

    Columns `by`, value, low, high, n, source (reproduced or published).
    """
    bands = {"reproduced": over_seeds(select(results, **where), by)}
    # Where nothing is printed, the printed numbers may lack the key columns.
    if len(printed := select(published, **where)):
        bands["published"] = from_moments(printed, by)
    return pd.concat(
        [band.assign(source=source) for source, band in bands.items()], ignore_index=True
    )


def select(frame: pd.DataFrame, **where) -> pd.DataFrame:
    """The rows in which every named column equals its value, or one of its values.

    Numbers are equal up to 1e-6, so .333 from a file equals .333 from a setting.
    """
    if frame.empty:  # An empty frame may lack the columns.
        return frame
    kept = np.arange(len(frame))
    for column, wanted in where.items():
        one = isinstance(wanted, str) or not isinstance(wanted, Sequence)
        among = _among(frame[column].take(kept), [wanted] if one else wanted)
        kept = kept[among]
    return frame.take(kept)


def _among(column: pd.Series, wanted: Sequence) -> np.ndarray:
    if all(isinstance(value, str) for value in wanted):
        return column.isin(list(wanted)).to_numpy()
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    return np.isclose(numbers[:, None], np.asarray(wanted, float), rtol=0, atol=1e-6).any(axis=1)

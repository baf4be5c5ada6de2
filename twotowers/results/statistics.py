"""Rows of a long-form result, and their means and 95 % intervals over seeds.

A result is one pandas DataFrame with a row per measured number: descriptive columns
(setting, strength, temperature, metric, position, ...), a column `seed` and a column `value`.
Published results have no seeds to show; they come as rows of mean (`value`), `sd` and `n`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit  # scipy.stats takes a second to import

BAND = ["value", "low", "high", "n"]
"""What a summary over seeds consists of: mean, both ends of the interval, number of seeds."""


def interval(
    mean: ArrayLike, sd: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Student's t interval of a mean, with n - 1 degrees of freedom.

    Args:
        mean: Means, any shape.
        sd: Sample standard deviations (of n - 1 degrees of freedom), same shape.
        n: Numbers of observations, same shape.
        level: The interval's coverage.

    Returns:
        Low and high ends; NaN where there is no interval: for one observation, or no sd.
    """
    mean, sd, n = (np.asarray(array, dtype=float) for array in (mean, sd, n))
    several = n > 1
    quantile = stdtrit(np.where(several, n - 1, 1), (1 + level) / 2)
    half = np.where(several, quantile * sd / np.sqrt(np.maximum(n, 1)), np.nan)
    return mean - half, mean + half


def frequency_interval(
    successes: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a probability.

    Args:
        successes: Numbers of successes, any shape.
        n: Numbers of independent trials, at least 1, same shape.
        level: The interval's coverage.

    Returns:
        Low and high ends, in [0, 1].
    """
    successes, n = np.asarray(successes, float), np.asarray(n, float)
    z = ndtri((1 + level) / 2)
    middle = (successes + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(successes * (n - successes) / n + z**2 / 4)
    # The ends of certain outcomes are exact; computed, they miss by a rounding error.
    return np.where(successes > 0, middle - half, 0), np.where(successes < n, middle + half, 1)


def over_seeds(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean and 95 % interval over seeds for every combination of the columns `by`.

    Args:
        results: Long form with columns `by`, seed and value.
        by: The columns that tell one summarised number from another.

    Returns:
        Columns `by`, value, low, high, n; in the order of `by`.

    Raises:
        ValueError: a seed occurs twice in a group, so `by` leaves out a column that matters.
    """
    by = list(by)
    if results.duplicated([*by, "seed"]).any():
        raise ValueError(
            f"a seed occurs twice within one group of {by}: name the column that differs"
        )
    grouped = results.groupby(by, dropna=False, sort=True)["value"]
    moments = grouped.agg(value="mean", sd="std", n="size").reset_index()
    return from_moments(moments, by)


def over_draws(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Median and 2.5 to 97.5 percentile over seeds, where each seed draws the data again.

    Unlike the interval of `over_seeds`, which is that of a mean and narrows with more seeds, this
    is the sampling error of one log: a bootstrap's percentile interval.

    Args and returns as in `over_seeds`.
    """
    by = list(by)
    grouped = results.groupby(by, dropna=False, sort=True)["value"]
    table = grouped.quantile([0.5, 0.025, 0.975]).unstack()
    table.columns = BAND[:3]
    return table.assign(n=grouped.size()).reset_index()


def from_moments(moments: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The summary of `over_seeds`, from columns value (the mean), sd and n."""
    low, high = interval(moments["value"], moments["sd"], moments["n"])
    summary = moments[[*by, "value"]].assign(low=low, high=high, n=moments["n"].astype(int))
    return summary.sort_values(list(by), ignore_index=True)


def without_levels(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Take each seed's own level out of a group: the means stay, their intervals narrow.

    Where a seed also draws the task (say, a synthetic relevance function), its level hides the
    differences between conditions, although these were all measured on the same task. After
    subtracting each seed's mean over a group's rows, and adding the group's mean, an interval
    over seeds speaks of those differences (Cousineau's within-subject interval).

    Args:
        results: Long form; every seed has the same rows in a group.
        by: The columns that make a group; its other rows are the conditions compared.
    """
    level = results.groupby([*by, "seed"])["value"].transform("mean")
    middle = results.groupby(list(by))["value"].transform("mean")
    return results.assign(value=results["value"] - level + middle)


def compare(
    results: pd.DataFrame, published: pd.DataFrame, by: Sequence[str], **where
) -> pd.DataFrame:
    """Reproduced and published bands of the same selection, one above the other.

    Args:
        results: Long form with seed and value.
        published: Long form with value, sd and n; it may be empty.
        by: The key columns.
        where: The selection, as in `select`.

    Returns:
        Columns `by`, value, low, high, n, source (reproduced or published).
    """
    bands = {
        "reproduced": over_seeds(select(results, **where), by),
        "published": from_moments(select(published, **where), by),
    }
    return pd.concat(
        [band.assign(source=source) for source, band in bands.items()], ignore_index=True
    )


def select(frame: pd.DataFrame, **where) -> pd.DataFrame:
    """The rows in which every named column equals its value, or one of its values.

    Numbers are compared up to 1e-6, so that .333 read from a file is .333 typed in a grid.
    """
    keep = np.ones(len(frame), dtype=bool)
    for column, wanted in where.items():
        one = isinstance(wanted, str) or not isinstance(wanted, Sequence)
        keep &= _among(frame[column], [wanted] if one else wanted)
    return frame[keep]


def _among(column: pd.Series, wanted: Sequence) -> np.ndarray:
    if all(isinstance(value, str) for value in wanted):
        return column.isin(list(wanted)).to_numpy()
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    return np.isclose(numbers[:, None], np.asarray(wanted, float), rtol=0, atol=1e-6).any(axis=1)

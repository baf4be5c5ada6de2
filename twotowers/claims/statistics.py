"""Results in long form, selections of them, and means with 95 % intervals over seeds.

A result is a pandas DataFrame with a row per measured number. The columns are paper, setting and
seed; columns that tell the rows of a setting or study apart (model, method and lanes of a fit;
regime, variant and others of a study); metric, position (from 1, NA if the metric has none) and
value. Published results have no seeds. Their rows have the mean (`value`), `sd` and `n`.

`moments` is for papers that print a mean and a standard deviation over runs, and gives each of them
a row. `compare` is for means with their intervals.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike
from scipy.special import stdtr  # importing scipy.stats is slow

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.intervals import interval, quantile

BAND = ["value", "low", "high", "n"]
"""Columns of a summary over seeds: mean, both ends of the interval, number of seeds."""
STATISTICS = {"": "mean", "<": "upper bound", ">": "lower bound"}
"""The statistic of a printed number, by its column `bound`."""
REQUIRED = ["paper", "setting", "seed", "metric", "position", "value"]


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
    """Mean and standard deviation over seeds of each group of `keys`, ours and the printed ones.

    `results` has the keys, seed and value; `published` the keys, value (a mean), sd, n and bound.
    A row per statistic has the columns `keys`, statistic, value, low, high, n and source. The
    statistic is 'mean' (with its 95 % interval), 'sd', or 'upper bound' or 'lower bound' if only a
    bound is printed. `order` has a key's values in the order of rows; others come last.
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


def write_results(
    results: pd.DataFrame, path: str | Path, *, paper: str, setting: str, seed: int
) -> None:
    """Write the results of one job: metric, position, value, and columns that tell rows apart."""
    results = results.assign(paper=paper, setting=setting, seed=seed)
    results = results.astype({"position": "Int64"} if "position" in results else {})
    own = [column for column in results if column not in REQUIRED]
    ordered = results[[*REQUIRED[:3], *own, *REQUIRED[3:]]]
    with atomic(path) as temporary:
        pq.write_table(pa.Table.from_pandas(ordered, preserve_index=False), temporary)


def read_results(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The results of several jobs in one table. Columns that a job lacks are NA."""
    tables = [pq.read_table(path, partitioning=None) for path in paths]
    table = pa.concat_tables(tables, promote_options="permissive")
    results = table.to_pandas(strings_to_categorical=True)
    # Rows of texts are taken several times as fast as objects.
    texts = dict.fromkeys(results.select_dtypes("category"), object)
    return results.astype({"position": "Int64", **texts})

"""Which fits have learnt nothing: docs/verdicts.md, "Gates of fits".

>>> rows = [("s", 1, 0.2, "gain_over_ranks", 0.01), ("s", 2, 0.2, "gain_over_ranks", 0.03),
...     ("s", 1, 1.0, "gain_over_ranks", 0.01), ("s", 2, 1.0, "gain_over_ranks", -0.03)]
>>> results = pd.DataFrame(rows, columns=["setting", "seed", "temperature", "metric", "value"])
>>> gates = gates_of(results.assign(position=None))
>>> gates["lane"].tolist(), gates["value"].round(3).tolist(), gates["fails"].tolist()
(['temperature .2', 'temperature 1'], [0.02, -0.01], [False, False])
>>> gates = gates_of(results.query("seed == 2").assign(position=None))
>>> gates["fails"].tolist()
[False, True]
>>> of_failing(results, gates).tolist()
[False, False, True, True]

The mean of the second lane is below 0, but two such seeds cannot tell; the second alone can.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from twotowers.claims.conditions import lane_text, written
from twotowers.claims.statistics import mean_interval

CONSTANT, RANKS, DOCUMENTS = "constant", "ranks", "documents"
"""The trivial predictors of clicks."""
GAIN = "gain_over_"
"""Before the name of a trivial predictor: the metric of its loss less that of the fit, in nats."""
BESIDE = "gain_beside_"
"""The same of a predictor that the model does not contain. It is shown, and fails no gate."""
FALL = "fall_at_limit"
"""The metric of a fit at its limit: by what share its loss still fell."""

PREDICTS, STOPPED, STARTS = "predicts", "stopped", "starts"
"""The gates."""
LEAST_GAIN, MOST_FALL, MOST_RANGE = 0.0, 1e-3, 0.1
"""A gain must be above, a fall and a range of position bias must be at most these."""
LEVEL = 0.9
"""Coverage of the interval of a mean over seeds that surely fails: one-sided, .05."""
WORDS = {
    GAIN + CONSTANT: "predicts clicks better than a constant by",
    GAIN + RANKS: "predicts clicks better than the rates of ranks by",
    GAIN + DOCUMENTS: "predicts clicks better than the rates of documents by",
    BESIDE + RANKS: "predicts clicks better than the rates of ranks, which are no case of it, by",
    BESIDE + DOCUMENTS: (
        "predicts clicks better than the rates of documents, which are no case of it, by"
    ),
    FALL: "loss still falling at the limit of epochs, by a share of",
    STARTS: "position bias differs between starts by",
}
"""What each number is, as a text that the number follows."""

COLUMNS = ["setting", "lane", "gate", "metric", "value", "fails", "columns"]

# Columns that tell no lanes apart.
_FIXED = {
    "paper", "setting", "seed", "metric", "position", "value", "model", "method", "components",
    "stands_on",
}  # fmt: skip


def gates_of(results: pd.DataFrame) -> pd.DataFrame:
    """The gates of all fits, as means over seeds: a row per setting, lane and number, with COLUMNS.

    `columns` has the values of the lane by column. Studies, and fits that report no such number,
    have no rows.
    """
    rows = [row for name, own in results.groupby("setting", sort=False) for row in _rows(name, own)]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"fails": bool})


def _rows(setting: str, results: pd.DataFrame) -> Iterator[tuple]:
    numbers = results[
        results["metric"].str.startswith((GAIN, BESIDE)) | (results["metric"] == FALL)
    ]
    lanes = [name for name in numbers if name not in _FIXED and numbers[name].notna().any()]
    for (metric, *values), own in numbers.groupby(["metric", *lanes], sort=False, dropna=False):
        low, value, high = _ends(own["value"])
        gain = metric != FALL
        passed = high > LEAST_GAIN if gain else low <= MOST_FALL
        passed |= metric.startswith(BESIDE)
        gate, columns = PREDICTS if gain else STOPPED, dict(zip(lanes, values, strict=True))
        yield setting, lane_text(columns), gate, metric, value, not passed, columns
    if "start" in lanes and numbers["start"].nunique() > 1:
        yield from _rows_of_starts(setting, results, [name for name in lanes if name != "start"])


def _rows_of_starts(setting: str, results: pd.DataFrame, lanes: list[str]) -> Iterator[tuple]:
    bias = results[results["metric"] == "position_bias"]
    for values, own in bias.groupby(lanes, sort=False) if lanes else [((), bias)]:
        ranges = own.groupby(["seed", "position"])["value"].agg(np.ptp)
        low, value, _ = _ends(ranges.groupby("seed").max())
        columns = dict(zip(lanes, values, strict=True))
        yield setting, lane_text(columns), STARTS, STARTS, value, not low <= MOST_RANGE, columns


def _ends(values: pd.Series) -> tuple[float, float, float]:
    """A mean over seeds between the ends of its interval, which are itself if there is one seed."""
    mean = values.to_numpy().mean()
    if len(values) < 2 or not np.isfinite(values).all():
        return mean, mean, mean
    low, high = mean_interval(mean, values.std(ddof=1), len(values), level=LEVEL)
    return float(low), mean, float(high)


def of_failing(results: pd.DataFrame, gates: pd.DataFrame) -> pd.Series:
    """Of each row of results, whether it is of a lane with a gate that fails."""
    failing = pd.Series(False, results.index)
    for setting, lanes in gates[gates["fails"]].groupby("setting")["columns"]:
        at = np.flatnonzero(results["setting"] == setting)
        names = {name for columns in lanes for name in columns}
        rows = {name: results[name].iloc[at].to_numpy(object) for name in names}
        lane_fails = np.zeros(len(at), bool)
        for columns in lanes:
            own = [
                pd.isna(rows[name]) if pd.isna(value) else rows[name] == value
                for name, value in columns.items()
            ]
            lane_fails |= np.all(own, axis=0)
        failing.iloc[at[lane_fails]] = True
    return failing


def failing_text(gates: pd.DataFrame) -> str:
    """The gates that fail, as a text: of each setting the worst number, and how many more fail."""
    texts = []
    for setting, own in gates[gates["fails"]].groupby("setting", sort=False):
        row = own.loc[own["value"].where(own["gate"] == PREDICTS, -own["value"]).idxmin()]
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        lane = f" at {row['lane']}" if row["lane"] else ""
        texts.append(f"{setting}{lane} {WORDS[row['metric']]} {written(row['value'], 4)}{more}")
    return "; ".join(texts)


def lines(gates: pd.DataFrame) -> list[tuple[str, bool]]:
    """The gates of one setting, for readers: a text for each number, and whether it fails."""
    texts = []
    for metric, own in gates.groupby("metric", sort=False):
        low, high = (written(value, 4) for value in (own["value"].min(), own["value"].max()))
        text = f"{WORDS[metric]} {low if low == high else f'{low} to {high}'}"
        if metric == FALL and (own["value"] == 0).all():
            text = "stopped by itself"
        fails = int(own["fails"].sum())
        if fails and len(own) > 1:
            text += f", fails in {fails} of {len(own)} lanes"
        texts.append((text, bool(fails)))
    return texts

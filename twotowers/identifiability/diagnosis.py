"""Diagnose the identifiability of a click log with any columns, and propose repairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.errors import InputError, nearest
from twotowers.fitting.pair_counts import PairCounts
from twotowers.identifiability.graph import factor_components
from twotowers.identifiability.intervention import Intervention, node_intervention
from twotowers.identifiability.merging import Merging, node_merging
from twotowers.identifiability.strength import Strength, strength_of_log

COUNTS = ("impressions", "clicks")
MOST_WEIGHED = 1_000
"""The most bias factors whose links are weighed: time grows with the third power."""


@dataclass(frozen=True)
class Report:
    """The diagnosis of a log.

    Attributes:
        rows: number of rows with impressions.
        features: a row per feature vector, in the order of their numbers.
        factors: a row per bias factor in the log, sorted.
        component: [factors] connected component of each bias factor, from 0.
        merging: bias factors to merge; None if not needed, not wanted or not possible.
        intervention: feature vectors to swap; None if not needed or not wanted.
        rates: whether click rates chose the swaps. Otherwise all swaps count as equally good.
        feature, factor, impressions, clicks: [rows] number of the feature vector, of the bias
            factor, and counts. Without impressions a row is one; without clicks, each impression.
    """

    rows: int
    features: pd.DataFrame
    factors: pd.DataFrame
    component: np.ndarray
    merging: Merging | None
    intervention: Intervention | None
    rates: bool
    feature: np.ndarray
    factor: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """[components] number of bias factors of each component."""
        return np.bincount(self.component)

    @property
    def identified(self) -> bool:
        """Whether bias is identified up to one constant (Chen et al. 2024, Theorem 1)."""
        return len(self.sizes) == 1

    def strength(self) -> Strength | None:
        """How well bias factors hang together, by the clicks of the log.

        None if no two bias factors are linked, or if there are more than `MOST_WEIGHED`.
        """
        factors = len(self.factors)
        if len(self.sizes) == factors or factors > MOST_WEIGHED:
            return None
        counts = self.feature, self.factor, self.impressions, self.clicks
        return strength_of_log(PairCounts.of_arrays(*counts, factors=factors))


def check_columns(wanted: Iterable[str], names: Iterable[str], path: object) -> None:
    """Raise InputError for a missing column. The message offers the nearest name."""
    names = list(dict.fromkeys(names))
    for name in wanted:
        if name not in names:
            raise InputError("no such column", field=name, path=path, expected=nearest(name, names))


def check_log(
    table: pd.DataFrame,
    *,
    feature: list[str],
    bias: list[str],
    bias_features: list[str] | None = None,
    repair: str | None = None,
    path: object = None,
) -> Report:
    """Test a click log for identifiability, and find repairs (Chen et al. 2024, Section 4).

    Rows with 0 `impressions` do not count. Without that column, a row is one impression, and has
    one click or none. The click rates (clicks + 1/2) / (impressions + 1) of feature vectors and of
    bias factors choose the swaps. They are rough estimates of relevance and examination. If
    `clicks` is missing, all swaps count as equally good. Every proposed set of swaps connects the
    log. The estimates only choose the set that needs the fewest clicks.

    Args:
        feature: columns that together name the feature vector shown.
        bias: columns that together name the bias factor it was shown under.
        bias_features: numeric columns that are constant within a bias factor. The cost of merging
            two bias factors is their Euclidean distance. By default the bias columns, if they are
            numeric.
        repair: 'merge' or 'intervene'; by default both. Merging needs bias features.
    """
    check_columns([*feature, *bias, *(bias_features or [])], table.columns, path)
    if "impressions" not in table:
        clicked = {"clicks": table["clicks"].clip(upper=1)} if "clicks" in table else {}
        table = table.assign(impressions=1, **clicked)
    table = table[table["impressions"] > 0]
    if table.empty:
        raise InputError("the log is empty: nothing was shown", path=path)

    document, features = _number(table, feature)
    factor, factors = _number(table, bias)
    if len(factors) == 1:
        raise InputError(
            f"all rows have {' '.join(str(factors[name].iat[0]) for name in bias)}",
            field=" ".join(bias),
            path=path,
            expected="two bias factors or more: with one there is no bias to learn",
        )
    component = factor_components(document, factor, factors=len(factors))
    merging = intervention = None
    if component.any():
        if bias_features is None and all(map(_numeric, (factors[name] for name in bias))):
            bias_features = bias
        if bias_features is None and repair == "merge":
            text = next(name for name in bias if not _numeric(factors[name]))
            raise InputError(
                "not numeric, so bias factors have no distances to merge by",
                field=text,
                path=path,
                expected="numeric bias columns, or bias features",
            )
        if bias_features is not None and repair != "intervene":
            points = _bias_features(table, factor, bias_features, path)
            merging = node_merging(document, factor, points)
        if repair != "merge":
            estimates = (_rate(table, each) for each in (document, factor))
            intervention = node_intervention(document, factor, *estimates)
    rates, shown = "clicks" in table, table["impressions"].to_numpy(float)
    clicks = table["clicks"].to_numpy(float) if rates else shown
    return Report(
        len(table),
        features,
        factors,
        component,
        merging,
        intervention,
        rates,
        document,
        factor,
        shown,
        clicks,
    )


def _wrong(column: pd.Series, wrong: np.ndarray, path, expected: str) -> InputError:
    """The error of the first wrong value."""
    (value,) = column.iloc[[int(np.argmax(wrong))]].tolist()
    message = f"{value!r:.40} was found"
    return InputError(message, field=str(column.name), path=path, expected=expected)


def _text(column: pd.Series) -> np.ndarray:
    """[rows] which values make that a column is not numeric: all, if each could be a number."""
    text = pd.to_numeric(column, errors="coerce").isna().to_numpy()
    return text if text.any() else ~text


def _number(table: pd.DataFrame, names: list[str]) -> tuple[np.ndarray, pd.DataFrame]:
    """[rows] number of each row's values in some columns, and the distinct values in order."""
    number = table.groupby(names, sort=True, observed=True).ngroup().to_numpy()
    first = np.unique(number, return_index=True)[1]
    return number, table[names].iloc[first].reset_index(drop=True)


def _numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _bias_features(table, factor, names, path) -> np.ndarray:
    points = np.empty((factor.max() + 1, len(names)))
    for dimension, name in enumerate(names):
        if not _numeric(table[name]):
            raise _wrong(table[name], _text(table[name]), path, "numbers")
        values = table[name].to_numpy(float)
        if not (finite := np.isfinite(values)).all():
            raise _wrong(table[name], ~finite, path, "finite numbers")
        points[factor, dimension] = values
        if (differs := points[factor, dimension] != values).any():
            other = points[factor, dimension][differs][0]
            expected = f"one number per bias factor, and another row of this one has {other:g}"
            raise _wrong(table[name], differs, path, expected)
    return points


def _rate(table: pd.DataFrame, group: np.ndarray) -> np.ndarray:
    """[groups] click rates; 1 if the log has no clicks."""
    if "clicks" not in table:
        return np.ones(group.max() + 1)
    clicks, shown = (np.bincount(group, table[name]) for name in ("clicks", "impressions"))
    return (clicks + 0.5) / (shown + 1)

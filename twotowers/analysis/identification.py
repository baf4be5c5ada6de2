"""Is a click log identified, and what would repair it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from twotowers.analysis.column_counts import any_log, count_columns
from twotowers.errors import InputError, check_choice, check_names
from twotowers.fits.defaults import BIAS, FEATURE, REPAIRS
from twotowers.fitting.pair_counts import PairCounts
from twotowers.identifiability.graph import factor_components
from twotowers.identifiability.intervention import Intervention, node_intervention
from twotowers.identifiability.merging import Merging, node_merging
from twotowers.identifiability.strength import (
    ENOUGH_SWAPS,
    Strength,
    number_of,
    strength_of_log,
    weakest_link,
)
from twotowers.logs.click_log import ClickLog
from twotowers.logs.frames import PANDAS, Native, both_ends, native
from twotowers.logs.layouts import TABLES
from twotowers.report.shown import Shown

MOST_WEIGHED = 1_000
"""The most bias factors whose links are weighed: time grows with the third power."""
TABULAR = ("rows", "cells")
"""Formats with a row per shown document. Such a table is read as it is, so it needs no session."""
FEW = 20
"""The most bias factors, components or repairs that are listed one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Shown):
    """What a click log tells of bias and relevance apart.

    `print` shows it in words.

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
        kind: the library of the frames that answers come in.
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
    kind: str = PANDAS

    @property
    def sizes(self) -> np.ndarray:
        """[components] number of bias factors of each component."""
        return np.bincount(self.component)

    @property
    def identified(self) -> bool:
        """Whether bias is identified up to one constant (Chen et al. 2024, Theorem 1)."""
        return len(self.sizes) == 1

    @cached_property
    def strength(self) -> Strength | None:
        """How well bias factors hang together, by the clicks of the log.

        None if no two bias factors are linked, or if there are more than `MOST_WEIGHED`.
        """
        factors = len(self.factors)
        if len(self.sizes) == factors or factors > MOST_WEIGHED:
            return None
        counts = self.feature, self.factor, self.impressions, self.clicks
        return strength_of_log(PairCounts.of_arrays(*counts, factors=factors))

    @cached_property
    def components(self) -> Native:
        """A frame with a row per bias factor: its columns, and the number of its component."""
        return native(self.factors.assign(component=self.component), self.kind)

    @cached_property
    def merges(self) -> Native | None:
        """A frame with a row per pair of bias factors to treat as one: the columns of both (the
        second ones with the ending `_with`), and their distance. None if nothing is to be merged.
        """
        if self.merging is None:
            return None
        ends = both_ends(self.factors, *self.merging.pairs.T)
        return native(ends.assign(distance=self.merging.cost), self.kind)

    @cached_property
    def swaps(self) -> Native | None:
        """A frame with a row per feature vector to show under another bias factor: its columns,
        those of its factor and of the other one (with the ending `_to`), and the cost. None if
        nothing is to be swapped."""
        swaps = self.intervention
        if swaps is None:
            return None
        what = self.features.iloc[swaps.feature].reset_index(drop=True)
        ends = both_ends(self.factors, swaps.source, swaps.target, "_to")
        return native(what.join(ends).assign(cost=swaps.cost), self.kind)

    @cached_property
    def weakest(self) -> Native | None:
        """The link between two bias factors that is known the least: a frame of one row.

        It has the columns of both bias factors (the second ones with the ending `_with`); clicks,
        by which the two can be compared; swaps, the effective number of swaps, which would give the
        same error; error, the standard error of the logarithm of the ratio of their examination,
        all ways between the two taken together; and share, the part of what is known of it that
        comes from this link, 1 for a link without which the log falls apart
        (`twotowers.identifiability.strength`). None if clicks tie no two bias factors, or if there
        are more than 1,000.
        """
        known = self.strength
        if known is None or known.links.empty:
            return None
        link = known.links.head(1)
        ends = both_ends(self.factors, link["one"], link["other"])
        evidence = link[["clicks", "swaps", "error", "share"]].reset_index(drop=True)
        return native(ends.join(evidence), self.kind)

    def lines(self) -> Iterator[str]:
        """What is printed."""
        yield from describe(self)


def identify(
    log: object,
    *,
    bias: Sequence[str] = BIAS,
    feature: Sequence[str] = FEATURE,
    bias_features: Sequence[str] | None = None,
    repair: str | None = None,
) -> Identification:
    """Can position bias, or any other bias, be learned from a log at all?

    Clicks tell examination from relevance up to one constant if, and only if, the bias factors are
    connected: two factors are linked if both showed the same feature vector (Chen et al. 2024,
    Theorem 1; Hager et al. 2025, Theorem 4.1). This needs no model and no fit.

    Args:
        log: a log of `read_log`; or a table as a path or a frame, which may have any columns.
        bias: columns that together name the bias factor, such as ["position", "device"]. Names of
            ours or of the source.
        feature: columns that together name the feature vector; by default the document of a
            query.
        bias_features: numeric columns whose distance is the cost of merging two bias factors; the
            bias columns, if they are numeric.
        repair: "merge" or "intervene", to find only this repair of a log that is not identified.

    Returns:
        the answer: `.identified`, `.components`, `.weakest`, `.merges`, `.swaps`. `print` shows it.

    Raises:
        InputError: a column is missing or has wrong values, or the log is empty.

    Example:
        >>> import pyarrow as pa
        >>> log = pa.table({"query": [7, 7, 7], "document": ["a", "b", "b"], "position": [1, 2, 3],
        ...                 "clicks": [1, 0, 0]})
        >>> found = identify(log)
        >>> found.identified, found.components["component"].to_pylist()
        (False, [0, 1, 1])
        >>> found.merges.to_pylist()
        [{'position': 1, 'position_with': 2, 'distance': 1.0}]
    """
    named = {"feature": feature, "bias": bias, "bias_features": bias_features}
    wanted = {
        name: check_names(columns, field=name)
        for name, columns in named.items()
        if columns is not None or name != "bias_features"
    }
    if repair is not None:
        check_choice(repair, REPAIRS, field="repair")
    every = list(dict.fromkeys(name for columns in wanted.values() for name in columns))
    given = log if isinstance(log, ClickLog) else any_log(log)
    check = partial(_identified, **wanted, repair=repair, path=str(given.source))
    others = {*given.settings} - {"bias"}  # A setting is for the reader of pages.
    if given.layout.format not in TABULAR or given.rows is not None or others:
        ours = TABLES["cells"][0]
        further = [name for name in every if name not in ours]
        cells = given.count(["query", "document", "position", *further]).table()
        rows = pc.sum(cells["impressions"]).as_py()
        return replace(check(cells.to_pandas()), rows=rows, kind=given.kind)
    table, rows = count_columns(given, every)
    return replace(check(table), rows=rows, kind=given.kind)


def _identified(
    table: pd.DataFrame,
    *,
    feature: list[str],
    bias: list[str],
    bias_features: list[str] | None = None,
    repair: str | None,
    path: object,
) -> Identification:
    """Test the counts of a log for identifiability, and find repairs (Chen et al. 2024, Section 4).

    The click rates (clicks + 1/2) / (impressions + 1) of feature vectors and of bias factors choose
    the swaps. They are rough estimates of relevance and examination. If `clicks` is missing, all
    swaps count as equally good. Every proposed set of swaps connects the log. The estimates only
    choose the set that needs the fewest clicks.
    """
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
    return Identification(
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


def _wrong(column: pd.Series, wrong: np.ndarray, path: object, expected: str) -> InputError:
    """The error of the first wrong value."""
    (value,) = column.iloc[[int(np.argmax(wrong))]].tolist()
    message = f"{value!r:.40} was found"
    return InputError(message, field=str(column.name), path=path, expected=expected)


def _text(column: pd.Series) -> np.ndarray:
    """[rows] which values make that a column is not numeric: all, if each could be a number."""
    text = pd.to_numeric(column, errors="coerce").isna().to_numpy()
    return text if text.any() else ~text


def _number(table: pd.DataFrame, names: list[str]) -> tuple[np.ndarray, pd.DataFrame]:
    """Number the rows by their values in some columns: [rows], and the distinct values in order."""
    number = table.groupby(names, sort=True, observed=True).ngroup().to_numpy()
    first = np.unique(number, return_index=True)[1]
    return number, table[names].iloc[first].reset_index(drop=True)


def _numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _bias_features(
    table: pd.DataFrame, factor: np.ndarray, names: Sequence[str], path: object
) -> np.ndarray:
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


def describe(report: Identification) -> Iterator[str]:
    """The report, line by line."""
    yield f"{report.rows:,} rows, {len(report.features):,} feature vectors, " + (
        f"{len(report.factors):,} bias factors"
    )
    sizes = np.sort(report.sizes)[::-1]
    shown = ", ".join(f"{size:,}" for size in sizes[:FEW])
    rest = f" and {len(sizes) - FEW:,} more" if len(sizes) > FEW else ""
    yield f"components: {len(sizes):,} (bias factors in each: {shown}{rest})"
    if len(report.factors) <= FEW:
        for number in range(len(sizes)):
            members = np.flatnonzero(report.component == number)
            yield f"  {number + 1}: " + ", ".join(
                _name(report.factors, each) for each in members.tolist()
            )
    some = report.clicks.any() and (report.clicks < report.impressions).any()
    tied = report.strength if report.rates and some else None
    yield f"verdict: {_verdict(report, tied)}"
    if tied is not None and len(tied.links):
        yield weakest_link(tied, lambda each: _name(report.factors, each))
    if report.merging:
        yield from _repairs(
            f"merging, pairs of bias factors to treat as one: {len(report.merging.pairs):,}, at a "
            f"total distance of {report.merging.total:.6g}:",
            (
                f"{_name(report.factors, one)} and {_name(report.factors, other)}"
                f" (distance {cost:.4g})"
                for (one, other), cost in zip(
                    report.merging.pairs, report.merging.cost, strict=True
                )
            ),
            len(report.merging.pairs),
        )
    if report.intervention:
        swaps = report.intervention
        total = (
            f"at a total cost of {swaps.total:.6g} (in proportion to the variance that is left)"
            if report.rates
            else "for example"
        )
        costs = [f" (cost {cost:.4g})" if report.rates else "" for cost in swaps.cost]
        yield from _repairs(
            f"intervention, feature vectors to swap: {len(swaps.cost):,}, {total}:",
            (
                f"{_name(report.features, each)} from {_name(report.factors, source)}"
                f" to {_name(report.factors, target)}{cost}"
                for each, source, target, cost in zip(
                    swaps.feature, swaps.source, swaps.target, costs, strict=True
                )
            ),
            len(swaps.cost),
        )


def _verdict(report: Identification, tied: Strength | None) -> str:
    """The verdict of the theorem, and what clicks make of it."""
    said = "identified up to one constant" if report.identified else "not identified"
    if report.rates and not report.clicks.any():
        return f"{said}, but no document was clicked: such a log says nothing"
    if report.rates and (report.clicks == report.impressions).all():
        return f"{said}, but each impression was clicked: such a log says nothing"
    if tied is not None and tied.components > len(report.sizes):
        return (
            f"{said}, but its clicks fall into {tied.components:,} parts: documents that link them "
            "were not clicked, or on one side only"
        )
    if tied is not None and report.identified and tied.swaps < ENOUGH_SWAPS:
        return f"{said}, but hardly: {number_of(tied.swaps)} effective swaps tie it"
    return said


def _repairs(heading: str, repairs: Iterable[str], count: int) -> Iterator[str]:
    yield heading
    for _, line in zip(range(FEW), repairs, strict=False):
        yield f"  {line}"
    if count > FEW:
        yield f"  and {count - FEW:,} more"


def _name(values: pd.DataFrame, number: int) -> str:
    # A row of a frame has one type, so whole numbers in it would become fractions.
    return " ".join(f"{column}={values[column].iat[number]}" for column in values.columns)

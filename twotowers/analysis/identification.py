"""Is a click log identified, and what would repair it?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from twotowers.errors import InputError, check_names
from twotowers.fits.defaults import BIAS, FEATURE
from twotowers.fitting.pair_counts import PairCounts, factor_components
from twotowers.identifiability.graph import Intervention, node_intervention
from twotowers.identifiability.strength import (
    ENOUGH_SWAPS,
    Strength,
    number_of,
    strength_of_log,
    weakest_link,
)
from twotowers.logs.click_log import as_log
from twotowers.logs.counted import Counts
from twotowers.logs.frames import PANDAS, Native, both_ends, native
from twotowers.report.shown import Shown

MOST_WEIGHED = 1_000
"""The most bias factors whose links are weighed: time grows with the third power."""
FEW = 20
"""The most bias factors, components or swaps that are listed one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Shown):
    """What a click log tells of bias and relevance apart.

    `print` shows it in words.

    Attributes:
        counts: impressions and clicks by feature vector and bias factor.
        feature, factor: [rows] number of the feature vector, and of the bias factor.
        names: the columns of the feature vector.
        factors: a row per bias factor in the log, sorted.
        component: [factors] connected component of each bias factor, from 0.
        intervention: feature vectors to swap; None if not needed.
        kind: the library of the frames that answers come in.
    """

    counts: Counts
    feature: np.ndarray
    factor: np.ndarray
    names: tuple[str, ...]
    factors: pd.DataFrame
    component: np.ndarray
    intervention: Intervention | None = None
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
        counts = self.feature, self.factor, self.counts.impressions, self.counts.clicks
        return strength_of_log(PairCounts.of_arrays(*counts, factors=factors))

    @property
    def components(self) -> Native:
        """A frame with a row per bias factor: its columns, and the number of its component."""
        return native(self.factors.assign(component=self.component), self.kind)

    @property
    def swaps(self) -> Native | None:
        """A frame with a row per feature vector to show under another bias factor: its columns,
        those of its factor and of the other one (with the ending `_to`), and the cost. None if
        nothing is to be swapped."""
        swaps = self.intervention
        return None if swaps is None else native(self._swaps(swaps), self.kind)

    def _swaps(self, swaps: Intervention) -> pd.DataFrame:
        first = np.flatnonzero(np.diff(self.feature, prepend=-1))
        what = _values(self.counts, first[swaps.feature], self.names)
        ends = both_ends(self.factors, swaps.source, swaps.target, "_to")
        return what.join(ends).assign(cost=swaps.cost)

    def lines(self) -> Iterator[str]:
        """What is printed."""
        shown, sizes = self.counts.impressions.sum(), np.sort(self.sizes)[::-1]
        yield f"{shown:,} rows, {self.feature[-1] + 1:,} feature vectors, " + (
            f"{len(self.factors):,} bias factors"
        )
        largest = ", ".join(f"{size:,}" for size in sizes[:FEW])
        rest = f" and {len(sizes) - FEW:,} more" if len(sizes) > FEW else ""
        yield f"components: {len(sizes):,} (bias factors in each: {largest}{rest})"
        if len(self.factors) <= FEW:
            for number in range(len(sizes)):
                members = np.flatnonzero(self.component == number).tolist()
                yield f"  {number + 1}: {', '.join(map(self._name, members))}"
        clicked = self.counts.clicks.sum()
        tied = self.strength if 0 < clicked < shown else None
        yield f"verdict: {self._verdict(tied)}"
        if tied is not None and len(tied.links):
            yield weakest_link(tied, self._name)
        if self.intervention:
            total = f"at a total cost of {self.intervention.total:.6g}"
            yield f"feature vectors to swap, {total} (in proportion to the variance that is left):"
            swaps = self._swaps(self.intervention)
            table = swaps.head(FEW).to_string(index=False, float_format="{:.4g}".format)
            yield from (f"  {line}" for line in table.splitlines())
            if len(swaps) > FEW:
                yield f"  and {len(swaps) - FEW:,} more"

    def _verdict(self, tied: Strength | None) -> str:
        """The verdict of the theorem, and what clicks make of it."""
        said = "identified up to one constant" if self.identified else "not identified"
        clicked, shown = self.counts.clicks.sum(), self.counts.impressions.sum()
        if clicked in (0, shown):
            which = "each impression" if clicked else "no document"
            return f"{said}, but {which} was clicked: such a log says nothing"
        if tied is not None and tied.components > len(self.sizes):
            return (
                f"{said}, but its clicks fall into {tied.components:,} parts: documents that link "
                "them were not clicked, or on one side only"
            )
        if tied is not None and self.identified and tied.swaps < ENOUGH_SWAPS:
            return f"{said}, but hardly: {number_of(tied.swaps)} effective swaps tie it"
        return said

    def _name(self, number: int) -> str:
        # A row of a frame has one type, so whole numbers in it would become fractions.
        return " ".join(f"{name}={own.iat[number]}" for name, own in self.factors.items())


def identify(
    log: object, *, bias: Sequence[str] = BIAS, feature: Sequence[str] = FEATURE
) -> Identification:
    """Can position bias, or any other bias, be learned from a log at all?

    Clicks tell examination from relevance up to one constant if, and only if, the bias factors are
    connected: two factors are linked if both showed the same feature vector (Chen et al. 2024,
    Theorem 1; Hager et al. 2025, Theorem 4.1). This needs no model and no fit.

    Swaps of feature vectors connect a log that falls apart (Chen et al., Section 4.1). The click
    rates (clicks + 1/2) / (impressions + 1) of feature vectors and of bias factors, rough estimates
    of relevance and examination, choose those that need the fewest clicks.

    Args:
        log: a log of `read_log`, or what `read_log` takes.
        bias: columns that together name the bias factor, such as ["position", "device"].
        feature: columns that together name the feature vector; by default the document of a
            query.

    Returns:
        the answer: `.identified`, `.components`, `.swaps`. `print` shows it.

    Raises:
        InputError: a column is missing or has wrong values, or the log is empty.

    Example:
        >>> import pyarrow as pa
        >>> log = pa.table({"query": [7, 7, 7], "document": ["a", "b", "b"], "position": [1, 2, 3],
        ...                 "clicks": [1, 0, 0]})
        >>> found = identify(log)
        >>> found.identified, found.components["component"].to_pylist()
        (False, [0, 1, 1])
        >>> found.swaps.select(["document", "position", "position_to"]).to_pylist()
        [{'document': 'a', 'position': 1, 'position_to': 2}]
    """
    bias, feature = check_names(bias, field="bias"), check_names(feature, field="feature")
    log = as_log(log)
    counts = log.count(list(dict.fromkeys([*feature, *bias])))
    if not counts.impressions.any():
        raise InputError("the log is empty: nothing was shown", path=log.source)
    number, _ = counts.groups(feature)
    factor, first = counts.groups(bias)
    factors = _values(counts, first, bias)
    if len(factors) == 1:
        raise InputError(
            f"all rows have {' '.join(str(factors[name].iat[0]) for name in bias)}",
            field=" ".join(bias),
            path=log.source,
            expected="two bias factors or more: with one there is no bias to learn",
        )
    component = factor_components(number, factor, factors=len(factors))
    intervention = None
    if component.any():
        rates = (_rates(counts, each) for each in (number, factor))
        intervention = node_intervention(number, factor, *rates)
    names = tuple(feature)
    return Identification(counts, number, factor, names, factors, component, intervention, log.kind)


def _values(counts: Counts, rows: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Some columns of some rows of counts, as in the log."""
    return counts.where(rows).table().select(list(names)).to_pandas()


def _rates(counts: Counts, group: np.ndarray) -> np.ndarray:
    """[groups] click rates, of which none is 0."""
    clicks, shown = (np.bincount(group, each) for each in (counts.clicks, counts.impressions))
    return (clicks + 0.5) / (shown + 1)

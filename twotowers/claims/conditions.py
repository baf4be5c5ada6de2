"""Conditions on measured values. One threshold gives text, comparison, and distance.

A condition knows how its measurement is written, so a judge returns numbers only.

>>> condition = at_most("MCC at K = 1", 0.9)
>>> condition.words
'MCC at K = 1 is at most .9'
>>> condition.met_by(0.9), condition.met_by([0.8, 0.91])
(True, False)
>>> condition.text(pd.Series([0.8, 0.91], pd.Index([0, 0.5], name="temperature")))
'MCC at K = 1 = .800 (temperature 0), .910 (temperature .5)'
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

_leading_zero = re.compile(r"^(-?)0\.")

LOWER, UPPER = {"above", "at least"}, {"below", "at most"}
"""Relations whose threshold is a lower, or an upper end."""
STEPS = {"rises with each step": 1, "falls with each step": -1}
SIGNIFICANT = "significant"
"""The relation of a number that is a test itself: 1 or more if it finds what is claimed, -1 or less
if it finds the opposite, and between if it cannot tell."""
OPPOSITE = -2
"""The slack of such a number from which down it finds the opposite."""
STRICT = {"above", "below", *STEPS}
RELATIONS = [*sorted(LOWER | UPPER), "exactly"]
"""Relations to a threshold."""

MOST = 6
"""Of more values than these, a text has the lowest and the highest."""

Names = Mapping[object, str | Mapping]
"""What columns are called in texts: a name, or the names of their values."""


@dataclass(frozen=True)
class Condition:
    """A condition of a claim on one measured value, or on each of several values.

    Attributes:
        quantity: What is measured, as a text. Without a relation it is the whole condition.
        relation: How the value must compare with the threshold: one of RELATIONS. Or one of STEPS:
            what several values do, in their order. Or SIGNIFICANT.
        threshold: A number.
        of: What the threshold is a multiple of, as a text. The judge gives its value.
        otherwise: Why the claim is not testable if only conditions with this text fail.
        judged: False for a number that is shown only.
        discrete: Whether the value is a count, a share of few, a rank correlation or a word, which
            chance alone may leave as it is.
        some: Whether it is enough that one of several values meets it.
        digits: Behind the point. By default three, or one more than the threshold has; four of
            pairs.

    Example:
        >>> half = below("the error at tau 1", 0.5, "times that at tau 0")
        >>> half.words
        'the error at tau 1 is below .5 times that at tau 0'
        >>> half.met_by((0.2, 0.5)), half.met_by((0.25, 0.5))
        (True, False)
        >>> half.text((0.2, 0.5))
        'the error at tau 1 = .2000 against .5000'
    """

    quantity: str
    relation: str = ""
    threshold: float | None = None
    of: str = ""
    otherwise: str = ""
    judged: bool = True
    discrete: bool = False
    some: bool = False
    digits: int | None = None

    @property
    def words(self) -> str:
        """The condition as a sentence."""
        if not self.relation:
            return self.quantity
        if self.relation in STEPS:
            return f"{self.quantity} {self.relation}"
        if self.relation == SIGNIFICANT:
            return f"{self.quantity} is significant"
        return f"{self.quantity} is {self.relation} {short(self.threshold)} {self.of}".rstrip()

    def slack(self, measured: ArrayLike | tuple[ArrayLike, ArrayLike]) -> pd.Series:
        """The slack of each value, or step: positive if it meets the condition, else negative.

        It is the distance to the threshold (times `of`), or the height of each step. Of a condition
        without a relation, where `measured` is whether it holds, it is infinite, in the one or the
        other direction. With `of`, `measured` is a tuple with the value that the threshold is a
        multiple of.
        """
        if self.relation in STEPS:
            values = measured if isinstance(measured, pd.DataFrame) else _cells(measured)
            return STEPS[self.relation] * _cells(values.diff().iloc[1:])
        cells, unit = self._cells(measured)
        if not self.relation:
            return pd.Series(np.where(cells.astype(bool), np.inf, -np.inf), cells.index)
        return self._slack_to(self.threshold * unit, cells.astype(float))

    def _slack_to(self, threshold, values):
        """The signed distance of values to a threshold, as `slack` has it."""
        distance = values - threshold
        if self.relation == "exactly":
            return -abs(distance)
        return -distance if self.relation in UPPER else distance

    def met(self, slack: ArrayLike) -> np.ndarray:
        """Whether each value satisfies the condition, by its slack. NaN does not."""
        slack = np.asarray(slack)
        return slack > 0 if self.relation in STRICT else slack >= 0

    def met_by(self, measured: ArrayLike | tuple[ArrayLike, ArrayLike]) -> bool:
        """Whether the values satisfy the condition. No value at all does not."""
        return self.met_together(self.slack(measured))

    def met_together(self, slack: ArrayLike) -> bool:
        """Whether every value satisfies the condition, or one if `some` is enough, by its slack."""
        met = self.met(slack)
        return bool(met.any() if self.some else met.size and met.all())

    def finds_nothing(self, measured: ArrayLike) -> bool:
        """Whether it asks for what a test finds, which finds neither this nor the opposite."""
        return self.relation == SIGNIFICANT and bool((self.slack(measured) > OPPOSITE).all())

    def text(
        self, measured: ArrayLike | tuple[ArrayLike, ArrayLike], names: Names | None = None
    ) -> str:
        """What was measured, as a text: a few values with their labels, or the range of many."""
        cells, unit = self._cells(measured)
        about = self.quantity.rstrip(",")
        if cells.dtype == bool:
            return f"{about}: {'yes' if cells.all() else 'no'}"
        texts = pd.Series([self._written(value) for value in cells], cells.index, dtype=object)
        alike = self.of and len(set(unit)) == 1 and len(cells) > 1
        if self.of and not alike:
            texts += [f" against {self._written(one)}" for one in unit]
        labels = [_label(label, cells.index.names, names or {}) for label in cells.index]
        said = [
            f"{text} ({label})" if label else text
            for text, label in zip(texts, labels, strict=True)
        ]
        if alike:
            about += f", against {self._written(unit[0])},"
        if len(said) <= MOST:
            return f"{about} = {', '.join(said)}"
        # Pairs are ranked by how far they are from breaking the condition.
        ranked = (self.slack(measured) if self.of else cells).to_numpy().argsort(kind="stable")
        ends = f"{said[ranked[0]]} to {said[ranked[-1]]}, {len(said)} values"
        slack = self.slack(measured)
        failing = int((~self.met(slack)).sum()) if self.judged and self.relation else 0
        more = f", {failing} of {len(slack)} against it" if failing else ""
        return f"{about} = {ends}{more}"

    def _cells(self, measured) -> tuple[pd.Series, Any]:
        """The values, and of each what the threshold is a multiple of; 1 of all."""
        if not self.of:
            return _cells(measured), 1
        value, unit = measured
        if np.ndim(value) == 0 < np.ndim(unit):
            unit = _cells(unit)
            value = pd.Series(value, unit.index)
        units = np.broadcast_to(np.asarray(unit, float), np.shape(value) or (1,))
        return _cells(value), units.ravel()

    def _written(self, value: float) -> str:
        """With so many digits that a text is on the same side of the threshold as the value."""
        digits = (4 if self.of else 3) if self.digits is None else self.digits
        if self.relation in RELATIONS and not self.of:
            digits = self.digits or max(3, _decimals(self.threshold) + 1)

            def met(shown: float) -> np.ndarray:
                return self.met(self._slack_to(self.threshold, float(shown)))

            exact = met(value)
            while digits < 9 and met(round(value, digits)) != exact:
                digits += 1
        return written(value, digits)


def below(quantity: str, threshold: float, of: str = "") -> Condition:
    """The quantity is less than the threshold."""
    return Condition(quantity, "below", threshold, of)


def at_most(quantity: str, threshold: float, of: str = "") -> Condition:
    """The quantity is the threshold or less."""
    return Condition(quantity, "at most", threshold, of)


def above(quantity: str, threshold: float, of: str = "") -> Condition:
    """The quantity is more than the threshold."""
    return Condition(quantity, "above", threshold, of)


def at_least(quantity: str, threshold: float, of: str = "") -> Condition:
    """The quantity is the threshold or more."""
    return Condition(quantity, "at least", threshold, of)


def exactly(quantity: str, threshold: float) -> Condition:
    """The count equals the threshold."""
    return Condition(quantity, "exactly", threshold, discrete=True)


def significant(quantity: str) -> Condition:
    """A test of the paper's finds the quantity: see SIGNIFICANT."""
    return Condition(quantity, SIGNIFICANT, 1)


def some(condition: Condition) -> Condition:
    """The condition, which one of several values must meet."""
    return replace(condition, some=True)


def counted(condition: Condition) -> Condition:
    """The condition, on a count, a share of few, or a rank correlation."""
    return replace(condition, discrete=True)


def rises(quantity: str) -> Condition:
    """Each value is above the one before; of a table, in every column."""
    return Condition(quantity, "rises with each step")


def falls(quantity: str) -> Condition:
    """Each value is below the one before; of a table, in every column."""
    return Condition(quantity, "falls with each step")


def holds(words: str) -> Condition:
    """A condition without a number. The judge returns whether it holds."""
    return Condition(words, discrete=True)


def evidence_if(words: str, otherwise: str) -> Condition:
    """A condition that evidence needs. If only such conditions fail, the claim is not testable."""
    return Condition(f"evidence only if {words}", otherwise=otherwise)


def shown(quantity: str, digits: int | None = None) -> Condition:
    """A measured number that is shown with the others. No verdict depends on it."""
    return Condition(quantity, judged=False, digits=digits)


def number(value: float, digits: int = 3) -> str:
    """A number without the zero before the point, as papers print it: .043, -1.226."""
    return _leading_zero.sub(r"\1.", f"{value:.{digits}f}")


def short(value: float | str) -> str:
    """A number without trailing zeros: 0, .333, -1, 1e-6. A word is itself."""
    if isinstance(value, str):
        return value
    return _leading_zero.sub(r"\1.", f"{value:g}").replace("e-0", "e-")


def lane_text(columns: Mapping[str, object]) -> str:
    """The values of a lane, as a text."""
    return ", ".join(
        f"{name.replace('_', ' ')} {short(value)}"
        for name, value in columns.items()
        if not pd.isna(value)
    )


def written(value: float | str, digits: int = 3) -> str:
    """A measured number: whole ones without a point, tiny ones as a power of ten. A word is itself.

    >>> written(0.0432), written(12000.0), written(3e-7), written(-0.00412, 4), written(-0.0)
    ('.043', '12,000', '3.0e-7', '-.0041', '0')
    """
    if isinstance(value, str):
        return value
    if np.isfinite(value) and float(value).is_integer():
        return f"{value + 0:,.0f}"  # -0 is 0.
    if abs(value) < 0.5 * 10.0**-digits:
        return f"{value:.1e}".replace("e-0", "e-")
    return number(value, digits)


def _decimals(value: float) -> int:
    text = short(value)
    return len(text.partition(".")[2]) if "e" not in text else 0


def _cells(values: ArrayLike) -> pd.Series:
    """Any values as a series, with the labels that they have."""
    if isinstance(values, pd.DataFrame):
        return values.stack(future_stack=True) if len(values.columns) else pd.Series(dtype=float)
    if isinstance(values, Mapping):
        return pd.Series(values)
    if isinstance(values, pd.Series):
        return values
    array = np.asarray(values)
    return pd.Series(array.ravel(), index=[""] if array.ndim == 0 else [""] * array.size)


def _label(label: object, levels: list, names: Names) -> str:
    parts = label if isinstance(label, tuple) else (label,)
    return ", ".join(
        text for text in (_part(*pair, names) for pair in zip(parts, levels, strict=True)) if text
    )


def _part(value: object, level: object, names: Names) -> str:
    called = names.get(level, level)
    if isinstance(called, Mapping):
        if value in called:
            return called[value]
        # A pair of values (`twotowers.claims.claims.apart`) is a text of both.
        return " and ".join(called.get(one, one) for one in str(value).split(" and "))
    if isinstance(value, str):
        return value
    return f"{called or ''} {short(value)}".strip()

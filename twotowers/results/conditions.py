"""Conditions on measured values. One threshold gives both the text and the comparison.

>>> condition = at_most("MCC at K = 1", 0.9)
>>> condition.words
'MCC at K = 1 is at most .9'
>>> condition.met_by(0.9), condition.met_by([0.8, 0.91])
(True, False)
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_leading_zero = re.compile(r"^(-?)0\.")

RELATIONS = {
    "below": operator.lt,
    "at most": operator.le,
    "above": operator.gt,
    "at least": operator.ge,
    "exactly": operator.eq,
}


@dataclass(frozen=True)
class Condition:
    """A condition of a claim on one measured value, or on each of several values.

    Attributes:
        quantity: What is measured, as a text. Without a relation it is the whole condition.
        relation: How the value must compare with the threshold: a key of RELATIONS.
        threshold: A number.
        of: What the threshold is a multiple of, as a text. The judge gives its value.
        otherwise: Why the claim is not testable if only conditions with this text fail.

    Example:
        >>> half = below("the error at tau 1", 0.5, "times that at tau 0")
        >>> half.words
        'the error at tau 1 is below .5 times that at tau 0'
        >>> half.met_by((0.2, 0.5)), half.met_by((0.25, 0.5))
        (True, False)
    """

    quantity: str
    relation: str = ""
    threshold: float | None = None
    of: str = ""
    otherwise: str = ""

    @property
    def words(self) -> str:
        """The condition as a sentence."""
        if not self.relation:
            return self.quantity
        return f"{self.quantity} is {self.relation} {short(self.threshold)} {self.of}".rstrip()

    def met_by(self, measured: ArrayLike | tuple[ArrayLike, ArrayLike]) -> bool:
        """Whether every value satisfies the condition. An empty array and NaN do not.

        Args:
            measured: A number, or an array of any shape. With `of`, a tuple of this and of the
                value that the threshold is a multiple of. Without a relation, a bool: whether the
                condition holds.

        Raises:
            TypeError: a tuple without `of`, or `of` without a tuple.
        """
        if isinstance(measured, tuple) != bool(self.of):
            raise TypeError(f"{self.words}: a pair is needed if and only if the condition has `of`")
        value, unit = measured if self.of else (measured, 1)
        value = np.asarray(value)
        if self.relation:
            value = RELATIONS[self.relation](value, self.threshold * np.asarray(unit))
        return bool(value.size and value.all())


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
    """The quantity equals the threshold."""
    return Condition(quantity, "exactly", threshold)


def holds(words: str) -> Condition:
    """A condition without a threshold, such as an order. The judge returns whether it holds."""
    return Condition(words)


def evidence_if(words: str, otherwise: str) -> Condition:
    """A condition that evidence needs. If only such conditions fail, the claim is not testable."""
    return Condition(f"evidence only if {words}", otherwise=otherwise)


def number(value: float, digits: int = 3) -> str:
    """A number without the zero before the point, as papers print it: .043, -1.226."""
    return _leading_zero.sub(r"\1.", f"{value:.{digits}f}")


def short(value: float) -> str:
    """A number without trailing zeros: 0, .333, -1, 1e-6."""
    return _leading_zero.sub(r"\1.", f"{value:g}").replace("e-0", "e-")

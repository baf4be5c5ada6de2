"""Probabilities stored as two logarithms, which avoids underflow and cancellation.

A `Chance` holds ln p and ln(1 - p) of a probability p. Products, complements and mixtures of
chances are sums of exponentials of these logarithms. All terms are positive, so no digits cancel
as they would in 1 - p for p near 1. (Hager's Hager 2026, Section 5.5: `logaddexp` is Eq. 5.16,
`Chance.from_logits` is Eq. 5.17. The complement of a logarithm, Eq. 5.18, is not needed because
ln(1 - p) is stored too.)

The formulas accept NumPy and JAX arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

Array = Any
"""A NumPy or a JAX array."""

NEVER = -1e30
"""Stands for ln 0. It is finite because inf - inf in a gradient is NaN."""


TINY = 1e-300
"""Stands for 0 in a denominator."""


class Chance(NamedTuple):
    """A probability p in [0, 1], of any shape.

    Attributes:
        log: ln p.
        other: ln(1 - p).

    Example:
        >>> fair, rare = Chance.of(0.5), Chance.of(0.25)
        >>> (fair & rare).value.round(3).item(), fair.mix(rare, ~rare).value.round(3).item()
        (0.125, 0.5)
    """

    log: Array
    other: Array

    @classmethod
    def of(cls, probability: np.ndarray | float) -> Chance:
        """From probabilities in [0, 1], in NumPy."""
        probability = np.asarray(probability, float)
        with np.errstate(divide="ignore"):
            logs = np.log(probability), np.log1p(-probability)
        return cls(*(np.maximum(log, NEVER) for log in logs))

    @classmethod
    def from_logits(cls, logits: Array) -> Chance:
        """p = sigmoid(z): ln p = -ln(1 + e^-z), and ln(1 - p) = -ln(1 + e^z) (Eq. 5.17)."""
        return cls(log_sigmoid(logits), log_sigmoid(-logits))

    @property
    def value(self) -> np.ndarray:
        """p, in NumPy."""
        return np.exp(np.asarray(self.log))

    @property
    def logits(self) -> Array:
        """ln p - ln(1 - p)."""
        return self.log - self.other

    @property
    def always(self) -> Chance:
        """Probability 1, in the same shape."""
        return certain(self.log)

    def __invert__(self) -> Self:
        """1 - p."""
        return type(self)(*reversed(self))

    def __and__(self, also: Chance) -> Chance:
        """p q for independent events: 1 - p q = (1 - p) + p (1 - q)."""
        return Chance(self.log + also.log, log_sum(self.other, self.log + also.other))

    def mix(self, one: Chance, another: Chance) -> Chance:
        """p q + (1 - p) r, where q is `one` and r is `another`."""
        return Chance(
            log_sum(self.log + one.log, self.other + another.log),
            log_sum(self.log + one.other, self.other + another.other),
        )

    def passed(self, attractive: Chance, on: Chance) -> Chance:
        """e g' c / (1 - e g): examination behind a position without a click.

        There, e is this chance of examination, g that of attraction, g' = 1 - g, and c is the
        chance `on` of going on.
        """
        none, skipped = (self & attractive).other, self.log + attractive.other
        unseen = log_sum(self.other, skipped + on.other)
        return Chance(skipped + on.log - none, unseen - none)

    def log_of(self, happened: Array) -> Array:
        """ln p where it happened, and ln(1 - p) elsewhere."""
        return numbers_of(happened).where(happened, self.log, self.other)

    def at(self, index) -> Self:
        """The entries at `index`."""
        return type(self)(*(each[index] for each in self))

    def where(self, condition: Array, otherwise: Self) -> Self:
        """This chance where the condition holds, else `otherwise`."""
        both, numbers = zip(self, otherwise, strict=True), numbers_of(condition)
        return type(self)(*(numbers.where(condition, *each) for each in both))

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The same chance, broadcast to `shape`."""
        return type(self)(*(numbers_of(each).broadcast_to(each, shape) for each in self))


class Share(NamedTuple):
    """A probability p and 1 - p, as they are, in NumPy.

    Its methods are those of `Chance`, without logarithms, which take most of the time of EM. It is
    for probabilities of one event each: a product of many would be too small for a number.

    Example:
        >>> fair, rare = Share.of(np.array(0.5)), Share.of(np.array(0.25))
        >>> (fair & rare).other.item(), fair.mix(rare, ~rare).value.item()
        (0.875, 0.5)
    """

    value: np.ndarray
    other: np.ndarray

    @classmethod
    def of(cls, probability: np.ndarray) -> Share:
        return cls(probability, 1 - probability)

    __invert__, at = Chance.__invert__, Chance.at
    where, broadcast = Chance.where, Chance.broadcast

    @property
    def always(self) -> Share:
        return Share(np.ones_like(self.value), np.zeros_like(self.value))

    def __and__(self, also: Share) -> Share:
        return Share(self.value * also.value, self.other + self.value * also.other)

    def mix(self, one: Share, another: Share) -> Share:
        return Share(*(self.value * p + self.other * q for p, q in zip(one, another, strict=True)))

    def passed(self, attractive: Share, on: Share) -> Share:
        skipped = self.value * attractive.other
        # No click may be impossible, where a click was observed.
        none = np.maximum(self.other + skipped, TINY)
        return Share(skipped * on.value / none, (self.other + skipped * on.other) / none)

    def log_of(self, happened: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(np.where(happened, self.value, self.other)), NEVER)


def certain(like: Array) -> Chance:
    """p = 1, in the shape of `like`. `~certain(like)` is p = 0."""
    numbers = numbers_of(like)
    return Chance(numbers.zeros_like(like), numbers.full_like(like, NEVER))


def over_positions(step: Callable, start, columns):
    """Scan along the last axis in order, and stack what `step` returns at each position.

    `step`: (carry, column) -> (carry, found), for NumPy and JAX arrays. Columns are arrays [..., K]
    in tuples, which may be in tuples; a column is the same of arrays [...].
    """
    leaves: list[Array] = []
    _map(leaves.append, columns)
    if any(numbers_of(leaf) is not np for leaf in leaves):
        # Imported here because simulations run without JAX. `scan` compiles the body once.
        import jax

        numbers = jax.numpy
        first = jax.tree.map(lambda leaf: numbers.moveaxis(leaf, -1, 0), columns)
        found = jax.lax.scan(step, start, first)[1]
        return jax.tree.map(lambda leaf: numbers.moveaxis(leaf, 0, -1), found)
    carry, found = start, []
    for place in range(leaves[0].shape[-1]):
        carry, one = step(carry, _map(lambda leaf, k=place: leaf[..., k], columns))
        found.append(one)
    return _map(lambda *each: np.moveaxis(np.stack(each), 0, -1), *found)


def _map(function: Callable, tree, *others):
    """Apply a function to each array of a tree and the arrays at the same place in `others`."""
    if not isinstance(tree, tuple):
        return function(tree, *others)
    branches = [_map(function, *each) for each in zip(tree, *others, strict=True)]
    return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)


def log_sigmoid(logits: Array) -> Array:
    """ln sigmoid(z) of NumPy or JAX arrays, without underflow."""
    numbers = logits.__array_namespace__()
    return -numbers.logaddexp(numbers.zeros_like(logits), -logits)


def log_sum_over(log: Array) -> Array:
    """ln of the sum of exponentials along the last axis (Eq. 5.16)."""
    numbers = numbers_of(log)
    most = log.max(axis=-1, keepdims=True)
    return (most + numbers.log(numbers.exp(log - most).sum(axis=-1, keepdims=True)))[..., 0]


def log_sum(one: Array, another: Array) -> Array:
    """ln(e^a + e^b)."""
    return numbers_of(one).logaddexp(one, another)


def numbers_of(array: Array):
    """The array's own module, NumPy or JAX's. A NumPy scalar names none and gets NumPy."""
    return array.__array_namespace__() if hasattr(array, "__array_namespace__") else np

"""Fits click rates c = r(x) o(t) by updating relevance and examination in turn.

A row is one document at one place of one list. It has a feature vector x, a bias factor t and a
click rate c. Relevance r has one value per feature vector, and examination o has one per bias
factor (the examination hypothesis: Richardson et al., 2007). `alternate` repeats the two updates
of a `Rule`. One compiled program fits all lanes, such as starts, numbers of clicks or merged bias
factors. `LeastSquares` and `ExpectationMaximisation` are the standard rules. A new rule subclasses
`Rule`.

    >>> import numpy as np
    >>> relevance, examination = np.array([0.6, 0.3]), np.array([0.9, 0.5])
    >>> feature, factor = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> rates = ClickRates(
    ...     feature=feature,
    ...     factor=factor[None],
    ...     rate=(relevance[feature] * examination[factor])[None],
    ...     weight=np.ones((1, 4)),
    ...     features=2,
    ...     factors=2,
    ... )
    >>> fitted = alternate(rates, np.ones((1, 2)), LeastSquares(), steps=100)
    >>> print((fitted.examination[0] / fitted.examination[0, 0]).round(3))
    [1.    0.556]

The data do not identify one scale s in each connected part of the log (`identifiability.graph`):
s r and o / s fit the same clicks. The start decides which of these the fit finds.

Rows with the same feature vector and factor enter through their sums only, so each such pair is
one cell here. Cells lie in rectangles of 1, 2, 4, ... cells per feature vector. Then sums over a
feature vector are dense, and only the sums over a factor need the slower indexed addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass

from twotowers.errors import InputError, check_range

RIDGE = 1e-8
"""Added to the sum of squares of a feature vector, which may be 0."""


@dataclass(frozen=True)
class ClickRates:
    """Click rates of the rows of some lanes.

    Attributes:
        feature: [rows] integers in [0, features), the feature vector of each row.
        factor: [lanes, rows] integers in [0, factors), the bias factor of each row.
        rate: [lanes, rows] clicks per impression, in [0, 1].
        weight: [lanes, rows] weight in the fit, >= 0; 0 where a lane lacks the row.
        features: number of feature vectors.
        factors: number of bias factors.

    Raises:
        InputError: shapes disagree, or a value is out of range.
    """

    feature: np.ndarray
    factor: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    features: int
    factors: int

    def __post_init__(self):
        shape = np.shape(self.rate)
        for field in ("factor", "weight"):
            if np.shape(getattr(self, field)) != shape:
                raise InputError(
                    f"has shape {np.shape(getattr(self, field))}", field=field, expected=f"{shape}"
                )
        if len(shape) != 2 or np.shape(self.feature) != shape[1:]:
            raise InputError(
                f"has shape {np.shape(self.feature)} where rates have {shape}",
                field="feature",
                expected="[rows] for rates [lanes, rows]",
            )
        bounds = {
            "feature": (self.features - 1, f"in [0, {self.features})"),
            "factor": (self.factors - 1, f"in [0, {self.factors})"),
            "rate": (1, "in [0, 1]"),
            "weight": (np.inf, ">= 0"),
        }
        for field, (high, expected) in bounds.items():
            values = np.asarray(getattr(self, field))
            bad = values[~((values >= 0) & (values <= high))]
            if bad.size:
                raise InputError(f"{bad[0]} is out of range", field=field, expected=expected)


@dataclass(frozen=True)
class RateEstimate:
    """The fitted values of each lane.

    Attributes:
        relevance: [lanes, features] float in [0, 1]. Meaningless for features without weight.
        examination: [lanes, factors] float in [0, 1]. Factors without weight keep their start.
        steps: number of steps done; None for a fit in closed form.
    """

    relevance: np.ndarray
    examination: np.ndarray
    steps: int | None = None


def simulate_rates(chance: np.ndarray, clicks, rng: np.random.Generator) -> np.ndarray:
    """Draw click rates of rows: Binomial(N, chance) / N.

    Args:
        chance: click probabilities in [0, 1], for example [lanes, rows].
        clicks: N >= 1, impressions per row, in a shape that broadcasts to that of `chance`.
        rng: source of randomness.

    Returns:
        float32 rates in the shape of `chance`.

    Raises:
        InputError: a value is out of range.

    Example:
        >>> simulate_rates(np.array([0.0, 1.0]), 10, np.random.default_rng(0))
        array([0., 1.], dtype=float32)
    """
    chance, clicks = np.asarray(chance), np.asarray(clicks)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise InputError("is no probability", field="chance", expected="numbers in [0, 1]")
    if not (clicks >= 1).all():
        raise InputError(f"{clicks.min()} is out of range", field="clicks", expected=">= 1")
    return (rng.binomial(clicks, chance) / clicks).astype(np.float32)


def fit_naive(rates: ClickRates) -> RateEstimate:
    """Fit without debiasing: relevance is the weighted mean of click rates, examination is 1."""
    lanes = len(rates.rate)
    clicks, shown = (
        np.stack([np.bincount(rates.feature, row, rates.features) for row in rows])
        for rows in (rates.weight * rates.rate, rates.weight)
    )
    relevance = np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)
    return RateEstimate(relevance.astype(np.float32), np.ones((lanes, rates.factors), np.float32))


def click_mse(rates: ClickRates, estimate: RateEstimate) -> np.ndarray:
    """Weighted mean over rows of (r o - c)^2: [lanes] float64.

    The rates c are those that were fitted. So if the rates are sampled, the error of a good fit is
    below their variance, because the fit follows some of their noise.
    """
    fitted = estimate.relevance[:, rates.feature].astype(float) * np.take_along_axis(
        estimate.examination, np.asarray(rates.factor), 1
    )
    return (rates.weight * (fitted - rates.rate) ** 2).sum(1) / np.sum(rates.weight, 1)


@register_dataclass
@dataclass(frozen=True)
class Block:
    """The cells of all feature vectors with about the same number of cells, padded with weight 0.

    Attributes:
        clicks: [lanes, cells, features] sum of weight x rate.
        weight: [lanes, cells, features] sum of weight.
        base: [cells, features] base factor of each cell; see `Layout`.
        feature: [features] number of each feature vector.
    """

    clicks: jax.Array
    weight: jax.Array
    base: jax.Array
    feature: jax.Array


@register_dataclass
@dataclass(frozen=True)
class Layout:
    """Click rates by cell; see the module's docstring.

    Lanes may merge bias factors differently. Base factors are the coarsest partition that refines
    the factors of every lane, so all lanes share the same cells.

    Attributes:
        blocks: the cells.
        merged: [lanes, base] the lane's factor that contains each base factor.
        shown: [lanes, factors] sum of weight.
    """

    blocks: tuple[Block, ...]
    merged: jax.Array
    shown: jax.Array

    def spread(self, values: jax.Array) -> list[jax.Array]:
        """[lanes, factors] values -> the value of each cell, per block."""
        # Without the barrier XLA would repeat the lookup in `merged` for every cell.
        base = jax.lax.optimization_barrier(jnp.take_along_axis(values, self.merged, axis=1))
        return [base[:, block.base] for block in self.blocks]

    def collect(self, values: list[jax.Array]) -> jax.Array:
        """Values of each cell, per block -> [lanes, factors] sums."""
        lanes, bases = self.merged.shape
        index = jnp.concatenate([block.base.ravel() for block in self.blocks])
        cells = jnp.concatenate([part.reshape(lanes, -1) for part in values], axis=1)
        base = jax.vmap(lambda row: jax.ops.segment_sum(row, index, bases))(cells)
        factors = self.shown.shape[1]
        return jax.vmap(lambda row, to: jax.ops.segment_sum(row, to, factors))(base, self.merged)

    def by_feature(self, values: list[jax.Array], features: int) -> np.ndarray:
        """[lanes, features of a block] per block -> [lanes, features]; 0 for features not seen."""
        everyone = np.zeros((len(self.merged), features), self.shown.dtype)
        for block, part in zip(self.blocks, values, strict=True):
            everyone[:, np.asarray(block.feature)] = part
        return everyone


def lay_out(rates: ClickRates, dtype=np.float32) -> Layout:
    """Put the rates on the device, by cell, in floats of the given type."""
    factor, weight = np.asarray(rates.factor), np.asarray(rates.weight, float)
    lanes = len(factor)
    _, base = np.unique(factor[0], return_inverse=True)
    for lane in factor[1:]:
        _, base = np.unique(base * np.int64(rates.factors) + lane, return_inverse=True)
    bases = int(base.max(initial=-1)) + 1
    merged = np.zeros((lanes, bases), np.int32)
    merged[:, base] = factor

    key, cell = np.unique(rates.feature * np.int64(bases) + base, return_inverse=True)
    feature, cell_base = np.divmod(key, max(bases, 1))
    clicks, shown = (
        np.stack([np.bincount(cell, row, len(key)) for row in rows]).astype(dtype)
        for rows in (weight * rates.rate, weight)
    )
    seen, first, cells = np.unique(feature, return_index=True, return_counts=True)
    width = 2 ** np.ceil(np.log2(cells)).astype(int)
    blocks = []
    for size in np.unique(width):
        those = width == size
        number = np.arange(size)[:, None]
        valid = number < cells[those]
        index = np.where(valid, first[those] + number, 0)
        blocks.append(
            Block(
                clicks=jnp.asarray(clicks[:, index] * valid, dtype),
                weight=jnp.asarray(shown[:, index] * valid, dtype),
                base=jnp.asarray(cell_base[index], jnp.int32),
                feature=jnp.asarray(seen[those], jnp.int32),
            )
        )
    per_factor = np.stack(
        [np.bincount(*lane, rates.factors) for lane in zip(factor, weight, strict=True)]
    )
    return Layout(tuple(blocks), jnp.asarray(merged), jnp.asarray(per_factor, dtype))


@dataclass(frozen=True)
class Rule:
    """The updates of one step. A subclass gives `relevance` and `change`, and `weight` if needed.

    A step computes r per feature vector, and adds sum(change) / sum(weight) over a factor's cells
    to o. o is clipped to [0, 1] after every step, and r after the last. The program is compiled
    once per rule, so a rule with parameters must be hashable: a frozen dataclass of numbers.
    """

    at_once: ClassVar[bool] = False
    """Whether the update of o uses r of the step before, as EM does, and not the new r."""

    def relevance(self, block: Block, o: jax.Array, r: jax.Array) -> jax.Array:
        """New relevance.

        Args:
            block: the cells.
            o: [lanes, cells, features] examination of each cell.
            r: [lanes, 1, features] relevance of the step before.

        Returns:
            [lanes, features].
        """
        raise NotImplementedError

    def change(self, block: Block, o: jax.Array, r: jax.Array) -> jax.Array:
        """What each cell adds to the change of its factor's o: [lanes, cells, features].

        Args:
            block, o: as in `relevance`.
            r: [lanes, 1, features] the new relevance, or that of the step before if `at_once`.
        """
        raise NotImplementedError

    def weight(self, block: Block, r: jax.Array) -> jax.Array | None:
        """What each cell adds to the divisor, [lanes, cells, features]; None: its rows' weight."""
        return None


class LeastSquares(Rule):
    """Alternating least squares, the form of dual learning in Chen et al. (2024, Appendix C.3).

    One step is r = sum(c o) / (sum(o^2) + 1e-8) per feature vector, then o = sum(c r) / sum(r^2)
    per bias factor, both clipped to [0, 1]. Each minimises sum((c - o r)^2) over [0, 1] given the
    other (up to the 1e-8), so the error never grows.

    Ai et al. (2018) instead train both sides by gradients of listwise losses
    (`twotowers.models.dual`).
    """

    def relevance(self, block, o, r):
        """r = sum(c o) / (sum(o^2) + 1e-8), clipped to [0, 1]."""
        r = (block.clicks * o).sum(1) / ((block.weight * o**2).sum(1) + RIDGE)
        return jnp.clip(r, 0, 1)

    def change(self, block, o, r):
        """Sum of (c - o r) r over the cell's rows."""
        return r * (block.clicks - block.weight * o * r)

    def weight(self, block, r):
        """Sum of r^2 over the cell's rows."""
        return block.weight * r**2


class ExpectationMaximisation(Rule):
    """EM of the position-based model (Wang et al., 2018; Chuklin et al., 2015, Chapter 4).

    One step is, with r and o of the step before on the right,

        r = mean over a feature vector's rows of c + (1 - c) r (1 - o) / (1 - o r)
        o = mean over a bias factor's rows of    c + (1 - c) o (1 - r) / (1 - o r)

    These are the expected shares of impressions that were relevant, and that were examined. The
    likelihood of the clicks never falls. A value that starts at 1 stays there. Wang et al. replace
    the table r by a regression on features (regression-EM). `fitting.em` has the same update for a
    single log and for other click models.
    """

    at_once: ClassVar[bool] = True

    def relevance(self, block, o, r):
        """Mean of P(relevant | c) over a feature vector's rows, computed as r plus its change."""
        shown = block.weight.sum(1)
        surprise = (block.clicks - block.weight * o * r) * (1 - r) / _unclicked(o, r)
        return r[:, 0] + surprise.sum(1) / jnp.where(shown > 0, shown, 1)

    def change(self, block, o, r):
        """Sum of P(examined | c) - o = (c - o r) (1 - o) / (1 - o r) over the cell's rows."""
        return (block.clicks - block.weight * o * r) * (1 - o) / _unclicked(o, r)


def _unclicked(o: jax.Array, r: jax.Array) -> jax.Array:
    """1 - o r, or 1 where this is 0."""
    unclicked = 1 - o * r
    return jnp.where(unclicked == 0, 1, unclicked)


def alternate(
    rates: ClickRates,
    examination: np.ndarray,
    rule: Rule,
    *,
    steps: int,
    relevance: np.ndarray | float = 0.5,
    still: float = 0.0,
    dtype=np.float32,
) -> RateEstimate:
    """Repeat a rule's step until no parameter moves by more than `still`.

    Args:
        rates: the data.
        examination: [lanes, factors] start of o, in [0, 1].
        rule: the updates, for example `LeastSquares()`.
        steps: largest number of steps, 1 or more.
        relevance: start of r, in [0, 1]: a number, [features] or [lanes, features]. Only rules that
            are `at_once` use it. Others compute r from o.
        still: the fit stops when no parameter moves by more than this in a step.
        dtype: type of all numbers. `float64` needs JAX's `jax_enable_x64`.

    Raises:
        InputError: a start has a wrong shape, or a start or `steps` is out of range.
    """
    check_start(rates, examination, steps, low=0, high=1)
    start, shape = np.asarray(relevance), (len(rates.rate), rates.features)
    if start.shape not in ((), shape[1:], shape):
        raise InputError(
            f"the start has shape {start.shape}", field="relevance", expected=f"{shape}"
        )
    if not ((start >= 0) & (start <= 1)).all():
        raise InputError("the start is out of range", field="relevance", expected="[0, 1]")
    start = np.broadcast_to(start, shape)
    layout = lay_out(rates, dtype)
    r = [jnp.asarray(start[:, np.asarray(block.feature)], dtype) for block in layout.blocks]
    o = jnp.asarray(examination, dtype)
    number, r, o = _iterate(layout, r, o, jnp.int32(steps), still, rule)
    return RateEstimate(layout.by_feature(r, rates.features), np.asarray(o), int(number))


@partial(jax.jit, static_argnames="rule")
def _iterate(layout: Layout, r: list[jax.Array], o: jax.Array, steps, still, rule: Rule):
    """Number of steps done, r per block, and o."""

    def step(state):
        number, _, _, o, former = state
        r, changes, weights = [], [], []
        for block, at, old in zip(layout.blocks, layout.spread(o), former, strict=True):
            r.append(rule.relevance(block, at, old[:, None]))
            used = (old if rule.at_once else r[-1])[:, None]
            changes.append(rule.change(block, at, used))
            weights.append(rule.weight(block, used))
        # A rule without weights divides by the rows' weight, which is the same in every step.
        by_rows = any(weight is None for weight in weights)
        total = layout.shown if by_rows else layout.collect(weights)
        # The mean of changes, not of new values: new values would be sums of about a thousand
        # nearly equal numbers, and their rounding errors add up over 20,000 steps.
        mean = layout.collect(changes) / jnp.where(total > 0, total, 1)
        new = jnp.clip(o + mean, 0, 1)
        # Unless `at_once`, r follows from o. So r is not carried, and stops moving when o does.
        kept = r if rule.at_once else former
        pairs = zip([o, *former], [new, *kept], strict=True)
        moved = jnp.stack([jnp.abs(after - before).max() for before, after in pairs]).max()
        return number + 1, moved, o, new, kept

    def unfinished(state):
        number, moved, *_ = state
        return (number < steps) & ((number == 0) | (moved > still))

    start = jnp.int32(0), jnp.zeros((), o.dtype), o, o, r
    number, _, before, o, r = jax.lax.while_loop(unfinished, step, start)
    if not rule.at_once:
        r = [
            rule.relevance(block, at, old[:, None])
            for block, at, old in zip(layout.blocks, layout.spread(before), r, strict=True)
        ]
    return number, [jnp.clip(part, 0, 1) for part in r], o


def check_start(rates: ClickRates, start: np.ndarray, steps: int, *, low: float, high: float):
    """Raise InputError unless `start` is [lanes, factors] in [low, high] and `steps` is >= 1."""
    check_range(steps, field="steps", low=1, high=np.iinfo(np.int32).max, whole=True)
    expected = (len(rates.rate), rates.factors)
    if np.shape(start) != expected:
        raise InputError(
            f"the start has shape {np.shape(start)}", field="examination", expected=f"{expected}"
        )
    if not ((np.asarray(start) >= low) & (np.asarray(start) <= high)).all():
        raise InputError(
            "the start is out of range", field="examination", expected=f"[{low:g}, {high:g}]"
        )

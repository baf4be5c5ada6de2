"""Fits click rates c = r(x) o(t) by updating relevance and examination in turn.

A row is one document at one place of one list. It has a feature vector x, a bias factor t and a
click rate c. Relevance r has one value per feature vector, and examination o has one per bias
factor (the examination hypothesis: Richardson et al., 2007). `alternate` repeats the two updates
of a `Rule`, such as `LeastSquares`. One compiled program fits all lanes, such as starts, numbers of
clicks or merged bias factors. A new rule subclasses `Rule`.

The data do not identify one scale s in each connected part of the log (`identifiability.graph`):
s r and o / s fit the same clicks. The start decides which of these the fit finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from twotowers.fitting.tiles import ClickRates, Layer, Layout, lay_out

RIDGE = 1e-8
"""Added to the sum of squares of a feature vector, which may be 0."""


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


@dataclass(frozen=True)
class Rule:
    """The updates of one step. A subclass gives `relevance` and `change`, and `weight` if needed.

    A step computes r per feature vector from o, and adds sum(change) / sum(weight) over a factor's
    cells to o. o is clipped to [0, 1] after every step, and r after the last. The program is
    compiled once per rule, so a rule with parameters must be hashable: a frozen dataclass of
    numbers.
    """

    def relevance(self, cells: Layer, o: jax.Array) -> jax.Array:
        """[lanes, tiles] relevance of one feature vector per tile.

        `o` [lanes, cells, tiles] is the examination of each cell.
        """
        raise NotImplementedError

    def change(self, cells: Layer, o: jax.Array, r: jax.Array) -> jax.Array:
        """What each cell adds to the change of its factor's o: [lanes, cells, tiles].

        `r` [lanes, 1, tiles] is the new relevance.
        """
        raise NotImplementedError

    def weight(self, cells: Layer, r: jax.Array) -> jax.Array | None:
        """What each cell adds to the divisor: [lanes, cells, tiles]. None: its rows' weight."""
        return None


class LeastSquares(Rule):
    """Alternating least squares, the form of dual learning in Chen et al. (2024, Appendix C.3).

    One step is r = sum(c o) / (sum(o^2) + 1e-8) per feature vector, then o = sum(c r) / sum(r^2)
    per bias factor, both clipped to [0, 1]. Each minimises sum((c - o r)^2) over [0, 1] given the
    other (up to the 1e-8), so the error never grows.

    Ai et al. (2018) instead train both sides by gradients of listwise losses
    (`twotowers.methods.dla`).
    """

    def relevance(self, cells, o):
        """r = sum(c o) / (sum(o^2) + 1e-8), clipped to [0, 1]."""
        r = (cells.clicks * o).sum(1) / ((cells.weight * o**2).sum(1) + RIDGE)
        return jnp.clip(r, 0, 1)

    def change(self, cells, o, r):
        """Sum of (c - o r) r over the cell's rows."""
        return r * (cells.clicks - cells.weight * o * r)

    def weight(self, cells, r):
        """Sum of r^2 over the cell's rows."""
        return cells.weight * r**2


def alternate(
    rates: ClickRates, examination: np.ndarray, rule: Rule, *, steps: int
) -> RateEstimate:
    """Repeat a rule's step until no parameter moves, `steps` times at most.

    The start is `examination` [lanes, factors], in [0, 1].
    """
    layout = lay_out(rates)
    o = jnp.asarray(examination, np.float32)
    number, r, o = _iterate(layout, o, jnp.int32(steps), rule)
    return RateEstimate(layout.by_feature(r, rates.features), np.asarray(o), int(number))


@partial(jax.jit, static_argnames="rule")
def _iterate(layout: Layout, o: jax.Array, steps, rule: Rule):
    """Number of steps done, r per block and layer, and o."""

    def relevance(examined):
        return [
            [rule.relevance(cells, at) for cells in block.layers]
            for block, at in zip(layout.blocks, examined, strict=True)
        ]

    def step(state):
        number, _, _, o = state
        examined = layout.spread(o)
        changes, weights = [], []
        for block, at, layers in zip(layout.blocks, examined, relevance(examined), strict=True):
            pairs = [(cells, own[:, None]) for cells, own in zip(block.layers, layers, strict=True)]
            changes.append([rule.change(cells, at, own) for cells, own in pairs])
            weights.append([rule.weight(cells, own) for cells, own in pairs])
        # A rule without weights divides by the rows' weight, which is the same in every step.
        by_rows = any(weight is None for layers in weights for weight in layers)
        total = layout.shown if by_rows else layout.collect(weights)
        # The mean of changes, not of new values: new values would be sums of about a thousand
        # nearly equal numbers, and their rounding errors add up over 20,000 steps.
        mean = layout.collect(changes) / jnp.where(total > 0, total, 1)
        new = jnp.clip(o + mean, 0, 1)
        return number + 1, jnp.abs(new - o).max(), o, new

    def unfinished(state):
        number, moved, *_ = state
        return (number < steps) & ((number == 0) | (moved > 0))

    # r follows from o, so it stops moving when o does.
    start = jnp.int32(0), jnp.zeros((), o.dtype), o, o
    number, _, before, o = jax.lax.while_loop(unfinished, step, start)
    r = relevance(layout.spread(before))
    return number, jax.tree.map(lambda part: jnp.clip(part, 0, 1), r), o


def click_mse(rates: ClickRates, estimate: RateEstimate) -> np.ndarray:
    """Weighted mean over rows of (r o - c)^2: [lanes] float64.

    The rates c are those that were fitted. So if the rates are sampled, the error of a good fit is
    below their variance, because the fit follows some of their noise.
    """
    fitted = estimate.relevance[:, rates.feature].astype(float) * np.take_along_axis(
        estimate.examination, np.asarray(rates.factor), 1
    )
    return (rates.weight * (fitted - rates.rate) ** 2).sum(1) / np.sum(rates.weight, 1)

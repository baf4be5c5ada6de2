"""Alternation on click rates c = r(x) o(t): relevance and examination are updated in turn.

A row is one document at one place of one list. It has a feature vector x, a bias factor t and a
click rate c. Relevance r has one value per feature vector, and examination o has one per bias
factor (the examination hypothesis: Richardson et al., 2007). So it fits the position-based model.
`alternate` repeats the two updates of a `Rule`, such as `LeastSquares`. One compiled program fits
all lanes, such as starts, numbers of clicks or merged bias factors. A new rule subclasses `Rule`;
methods of a paper with rules of their own use `by_rule`, or `rates_of` and `fitted_of`.

The data do not identify one scale s in each connected part of the log (`identifiability.graph`):
s r and o / s fit the same clicks. The start decides which of these the fit finds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from twotowers.fitting.tiles import ClickRates, Layer, Layout, lay_out
from twotowers.methods.page_fits import SMALLEST
from twotowers.methods.task import Fitted, Split, Task, cells
from twotowers.randomness import stream

FACTORS = True
NEEDS = ("embedding", "position_based")
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


def fit(
    task: Task,
    *,
    start: Literal["random", "ones"] = "random",
    steps: Annotated[int, Field(ge=1)] = 1000,
) -> list[Fitted]:
    """Fit every lane's training log by least squares.

    Args:
        task: its model must be position-based, and its tower "embedding".
        start: of examination: drawn from U(0, 1), or 1 for all bias factors.
        steps: largest number of steps.
    """
    return by_rule(task, LeastSquares(), start=start, steps=steps)


def by_rule(task: Task, rule: Rule, *, start: str = "random", steps: int) -> list[Fitted]:
    """The same by another rule."""
    rates = rates_of(task)
    starts = starts_of(task, rates)
    starts = np.ones_like(starts) if start == "ones" else starts
    estimate = alternate(rates, starts, rule, steps=steps)
    return fitted_of(task, rates, estimate)


def starts_of(
    task: Task, rates: ClickRates, *, starts: int = 1, draw: str = "random"
) -> np.ndarray:
    """[lanes x starts, factors] where fits start: U(0, 1), or another law of the generator.

    A lane's starts do not depend on which other lanes are fitted.
    """
    named = [stream("start", task.seed, *task.logs[log].values()) for log, _ in task.lanes]
    return np.concatenate([getattr(rng, draw)((starts, rates.factors)) for rng in named])


def rates_of(task: Task) -> ClickRates:
    """Click rates of the cells of the training log: a row per cell, weighted by impressions.

    The mean weight of the cells that a lane shows is 1.
    """
    train = task.splits["train"]
    rows = [cells(train, log, all_cells=True) for log, _ in task.lanes]
    pair, position = rows[0][:2]
    factor = [place for _, place, _, _ in rows]
    if train.factors is not None:
        factor = [_factors(train.factors[log], position) for log, _ in task.lanes]
    shown, clicked = (np.stack([row[part] for row in rows]).astype(float) for part in (2, 3))
    mean = shown.sum(1, keepdims=True) / (shown > 0).sum(1, keepdims=True)
    return ClickRates(
        feature=pair,
        factor=np.stack(factor),
        rate=np.divide(clicked, shown, out=np.zeros_like(shown), where=shown > 0),
        weight=shown / mean,
        features=task.pairs,
        factors=int(np.max(factor)) + 1,
    )


def _factors(factors: np.ndarray, position: np.ndarray) -> np.ndarray:
    """[cells] the bias factor of each cell. The cells of a query follow each other."""
    query = np.repeat(np.arange(len(factors)), position.size // len(factors))
    return factors[query, position]


def fitted_of(
    task: Task,
    rates: ClickRates,
    estimate: RateEstimate,
    values: Mapping[str, np.ndarray] | None = None,
) -> list[Fitted]:
    """What a fit found. Its values have the mean over rows of (r o - c)^2, and how many bias
    factors a lane shows.

    Args:
        task, rates: see `rates_of`.
        estimate: of all lanes.
        values: further results, [lanes] by name.
    """
    shown = rates.weight > 0
    values = {
        "click_mse": click_mse(rates, estimate),
        "bias_factors": [
            len(np.unique(own[seen])) for own, seen in zip(rates.factor, shown, strict=True)
        ],
        **(values or {}),
    }
    train, fitted = task.splits["train"], []
    for lane, (log, _) in enumerate(task.lanes):
        relevance, examined = estimate.relevance[lane], estimate.examination[lane]
        at = np.arange(task.positions) if train.factors is None else _of_positions(train, log)
        fitted.append(
            Fitted(
                scores=lambda inputs, relevance=relevance: relevance[np.asarray(inputs)],
                bias=None if at is None else np.log(np.maximum(examined[at], SMALLEST)),
                values={name: each[lane] for name, each in values.items()},
                examined=None if train.factors is None else examined[train.factors[log]],
            )
        )
    return fitted


def _of_positions(train: Split, log: int) -> np.ndarray | None:
    """[positions] the bias factor of each; None if lists differ in the factor of a position."""
    shown = train.counts.of_log(log).impressions > 0
    factors = train.factors[log]
    first = factors[shown.argmax(0), np.arange(factors.shape[1])]
    return first if ((factors == first) | ~shown).all() else None

"""The examination hypothesis c = r(x) o(t), fitted to click rates (Chen et al. 2024, Eq. 1).

A row is one document shown at one place of one list: its feature vector x, its bias factor t
and its own sampled click rate. Four estimators of Section 5.1 find relevance r and examination
o; lanes (runs, numbers of clicks, merged bias factors) are fitted by one compiled program.
All formulas are those of the published code, which Appendix C.3 describes differently:

* DLA and regression EM update o from the relevance of the same step, not of the step before,
  and from relevance before it is clipped. Relevance therefore follows from o alone, and its
  random start has no effect.
* DLA's o is the mean of c / r, not the least squares solution; on the semi-synthetic data it
  is, and from clipped relevance (`fit_least_squares`).
* Regression EM takes c / o for the former relevance in its E-step, which then collapses:
  the new relevance is the mean of c / o.

Rows of the same feature vector and factor count through their sums only, so each such cell is
computed once. Cells lie by feature in rectangles of 1, 2, 4, ... cells per feature: sums over
a feature are dense, and only those over a factor are indexed, which is what takes time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import register_dataclass

from twotowers.errors import InputError, check_range

# What the published code adds to denominators.
EPSILON = 1e-8
LEARNING_RATE = 0.01


@dataclass(frozen=True)
class ClickRates:
    """Sampled click rates.

    Attributes:
        feature: [rows] integers in [0, features), the feature vector of each row.
        factor: [lanes, rows] integers in [0, factors), the bias factor it was seen under.
        rate: [lanes, rows] clicks per impression, in [0, 1].
        weight: [lanes, rows] >= 0; 0 where a lane lacks the row.
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
class Estimate:
    """What an estimator found.

    Attributes:
        relevance: [lanes, features] float32 in [0, 1]; without meaning where a feature has no
            weight.
        examination: [lanes, factors] float32 in [0, 1]; as it started where a factor has no
            weight.
    """

    relevance: np.ndarray
    examination: np.ndarray


def simulate_rates(chance: np.ndarray, clicks, rng: np.random.Generator) -> np.ndarray:
    """Click rates of rows that were each shown equally often: Binomial(N, chance) / N.

    Args:
        chance: click probabilities in [0, 1], for example [lanes, rows].
        clicks: N >= 1, impressions per row ("number of clicks" in Section 5.1), one number or
            anything that broadcasts to `chance`.

    Returns:
        float32 rates of the shape of `chance`.

    Raises:
        InputError: a value is out of range.
    """
    chance, clicks = np.asarray(chance), np.asarray(clicks)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise InputError("is no probability", field="chance", expected="numbers in [0, 1]")
    if not (clicks >= 1).all():
        raise InputError(f"{clicks.min()} is out of range", field="clicks", expected=">= 1")
    return (rng.binomial(clicks, chance) / clicks).astype(np.float32)


def fit_naive(rates: ClickRates) -> Estimate:
    """No debiasing: the mean click rate of each feature vector, examination 1."""
    lanes = len(rates.rate)
    clicks, shown = (
        np.stack([np.bincount(rates.feature, row, rates.features) for row in rows])
        for rows in (rates.weight * rates.rate, rates.weight)
    )
    relevance = np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)
    return Estimate(relevance.astype(np.float32), np.ones((lanes, rates.factors), np.float32))


def fit_dla(rates: ClickRates, examination: np.ndarray, *, steps: int) -> Estimate:
    """Dual learning: relevance by least squares given o, then o as the mean of c / r.

    One step is r = sum(c o) / sum(o^2) per feature vector and o = mean(c r / (r^2 + 1e-8)) per
    bias factor, clipped to [0, 1].

    Args:
        examination: [lanes, factors] o to start from: U(0, 1), or ones (Appendix D.4).
        steps: 20,000 published for documents by identity, 100 for the semi-synthetic data.
    """
    return _alternate(rates, examination, _relevance_dla, _change_dla, steps)


def fit_least_squares(rates: ClickRates, examination: np.ndarray, *, steps: int) -> Estimate:
    """Dual learning as Appendix C.3 prints it: both sides by least squares.

    One step is r = sum(c o) / sum(o^2) per feature vector, clipped to [0, 1], and from that r
    o = sum(c r) / sum(r^2) per bias factor, clipped too. The published code does this on the
    semi-synthetic data only, see `fit_dla`. There a start below the click rate is mended by the
    first step, which `fit_dla` would keep.

    Args and returns as in `fit_dla`.
    """
    return _alternate(rates, examination, _relevance_dla, _change_least_squares, steps, _squares)


def fit_regression_em(rates: ClickRates, examination: np.ndarray, *, steps: int) -> Estimate:
    """Regression EM with one parameter per feature vector and per bias factor.

    One step is r = mean(c / o) per feature vector, then o = mean(P(examined | c)) per bias
    factor, with P = c + (1 - c) o (1 - r) / (1 - o r), clipped to [0, 1].

    An o that is clipped to 1 stays there, and such a lane never fits the clicks. Starts near 0
    lead to that in the first steps, since they make r large before it is clipped: about one
    start in ten on the authors' lists of K = 2 (papers/chen2024/README.md).

    Args:
        examination: [lanes, factors] o to start from: U(0, 1).
        steps: 20,000 in the paper, 100,000 in its code.
    """
    return _alternate(rates, examination, _relevance_em, _change_em, steps)


def fit_two_tower(rates: ClickRates, logits: np.ndarray, *, steps: int) -> Estimate:
    """Two towers: r and o are sigmoids, trained on cross-entropy by Adam on all rows at once.

    The loss is the mean over rows of -c ln(r o) - (1 - c) ln(1 - r o) (Appendix C.3), the
    learning rate 0.01; relevance logits start at 0.

    Args:
        logits: [lanes, factors] logits of o to start from, N(0, 1) published.
        steps: 20,000 published.
    """
    _check_start(rates, logits, steps, low=-np.inf, high=np.inf)
    layout = _lay_out(rates)
    start = jnp.asarray(logits, jnp.float32)
    relevance, examination = _descend(layout, start, jnp.int32(steps))
    return _estimate(rates, layout, relevance, examination)


def click_mse(rates: ClickRates, estimate: Estimate) -> np.ndarray:
    """Mean squared error of fitted click probabilities over rows: [lanes] float64.

    Against the rates that were fitted, as in the published code: with sampled rates the error
    of a perfect fit is below the rates' own variance, since it fits their noise too.
    """
    fitted = estimate.relevance[:, rates.feature].astype(float) * np.take_along_axis(
        estimate.examination, np.asarray(rates.factor), 1
    )
    return (rates.weight * (fitted - rates.rate) ** 2).sum(1) / np.sum(rates.weight, 1)


def correlation(truth: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Pearson's correlation with the true relevance, the paper's MCC: [lanes] float64.

    Each document counts once, however often it is shown (Table 1).

    Args:
        truth: [documents] true relevance, or [lanes, documents].
        relevance: [lanes, documents] estimates.

    Returns:
        NaN where either is constant.
    """
    truth, relevance = (
        values - values.mean(-1, keepdims=True)
        for values in (np.asarray(truth, float), np.asarray(relevance, float))
    )
    scale = np.sqrt((truth**2).sum(-1) * (relevance**2).sum(-1))
    return (truth * relevance).sum(-1) / np.where(scale > 0, scale, np.nan)


@register_dataclass
@dataclass(frozen=True)
class _Block:
    """Cells of the features that have about as many of them, padded with weight 0.

    Attributes:
        clicks: [lanes, cells, features] sum of weight x rate.
        weight: [lanes, cells, features] sum of weight.
        base: [cells, features] base factor of each cell.
        feature: [features] the features' numbers.
    """

    clicks: jax.Array
    weight: jax.Array
    base: jax.Array
    feature: jax.Array


@register_dataclass
@dataclass(frozen=True)
class _Layout:
    """Click rates by cell; see the module's docstring.

    Base factors are the coarsest that no lane splits any further, so that lanes with
    different factors share their cells.

    Attributes:
        blocks: the cells.
        merged: [lanes, base] each lane's factor of a base factor.
        shown: [lanes, factors] sum of weight.
    """

    blocks: tuple[_Block, ...]
    merged: jax.Array
    shown: jax.Array

    def spread(self, values: jax.Array) -> list[jax.Array]:
        """[lanes, factors] values, at each cell of each block."""
        # Without the barrier XLA looks factors up anew for every cell.
        base = jax.lax.optimization_barrier(jnp.take_along_axis(values, self.merged, axis=1))
        return [base[:, block.base] for block in self.blocks]

    def collect(self, values: list[jax.Array]) -> jax.Array:
        """[lanes, factors] sums of the values of all cells."""
        lanes, bases = self.merged.shape
        index = jnp.concatenate([block.base.ravel() for block in self.blocks])
        cells = jnp.concatenate([part.reshape(lanes, -1) for part in values], axis=1)
        base = jax.vmap(lambda row: jax.ops.segment_sum(row, index, bases))(cells)
        factors = self.shown.shape[1]
        return jax.vmap(lambda row, to: jax.ops.segment_sum(row, to, factors))(base, self.merged)


def _lay_out(rates: ClickRates) -> _Layout:
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
        np.stack([np.bincount(cell, row, len(key)) for row in rows]).astype(np.float32)
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
            _Block(
                clicks=jnp.asarray(clicks[:, index] * valid, jnp.float32),
                weight=jnp.asarray(shown[:, index] * valid, jnp.float32),
                base=jnp.asarray(cell_base[index], jnp.int32),
                feature=jnp.asarray(seen[those], jnp.int32),
            )
        )
    per_factor = np.stack(
        [np.bincount(*lane, rates.factors) for lane in zip(factor, weight, strict=True)]
    )
    return _Layout(tuple(blocks), jnp.asarray(merged), jnp.asarray(per_factor, jnp.float32))


def _relevance_dla(block: _Block, o: jax.Array) -> jax.Array:
    return (block.clicks * o).sum(1) / ((block.weight * o**2).sum(1) + EPSILON)


def _change_dla(block: _Block, o: jax.Array, r: jax.Array) -> jax.Array:
    return block.clicks * (r / (r**2 + EPSILON)) - block.weight * o


def _change_least_squares(block: _Block, o: jax.Array, r: jax.Array) -> jax.Array:
    r = jnp.clip(r, 0, 1)
    return r * (block.clicks - block.weight * o * r)


def _squares(block: _Block, r: jax.Array) -> jax.Array:
    return block.weight * jnp.clip(r, 0, 1) ** 2


def _relevance_em(block: _Block, o: jax.Array) -> jax.Array:
    return (block.clicks / (o + EPSILON)).sum(1) / (block.weight.sum(1) + EPSILON)


def _change_em(block: _Block, o: jax.Array, r: jax.Array) -> jax.Array:
    # P - o = (c - o r) (1 - o) / (1 - o r).
    unclicked = 1 - o * r
    unclicked = jnp.where(unclicked == 0, 1, unclicked)
    return (block.clicks - block.weight * o * r) * (1 - o) / unclicked


def _rows(block: _Block, r: jax.Array) -> jax.Array:
    return block.weight


def _alternate(rates, examination, relevance, change, steps, weigh=_rows) -> Estimate:
    _check_start(rates, examination, steps, low=0, high=1)
    layout = _lay_out(rates)
    start = jnp.asarray(examination, jnp.float32)
    rules = {"relevance": relevance, "change": change, "weigh": weigh}
    r, o = _iterate(layout, start, jnp.int32(steps), **rules)
    return _estimate(rates, layout, r, o)


@partial(jax.jit, static_argnames=("relevance", "change", "weigh"))
def _iterate(layout: _Layout, start: jax.Array, steps: jax.Array, *, relevance, change, weigh):
    """Alternate until nothing changes any more or `steps` are done."""

    def step(state):
        number, _, o = state
        changes, weights = [], []
        for block, at in zip(layout.blocks, layout.spread(o), strict=True):
            r = relevance(block, at)[:, None]
            changes.append(change(block, at, r))
            weights.append(weigh(block, r))
        # Weights by rows do not change from step to step, and are known.
        total = layout.shown if weigh is _rows else layout.collect(weights)
        # The mean of changes rather than of new values: those would be sums of a thousand
        # nearly equal numbers, whose rounding errors add up over 20,000 steps.
        mean = layout.collect(changes) / jnp.where(total > 0, total, 1)
        return number + 1, o, jnp.clip(o + mean, 0, 1)

    def unfinished(state):
        number, before, o = state
        return (number < steps) & ((number == 0) | (before != o).any())

    _, before, o = jax.lax.while_loop(unfinished, step, (jnp.int32(0), start, start))
    r = [
        jnp.clip(relevance(block, at), 0, 1)
        for block, at in zip(layout.blocks, layout.spread(before), strict=True)
    ]
    return r, o


@jax.jit
def _descend(layout: _Layout, start: jax.Array, steps: jax.Array):
    """Adam's steps on the towers' logits."""
    optimiser = optax.adam(LEARNING_RATE)
    zeros = [jnp.zeros_like(block.clicks[:, 0]) for block in layout.blocks]

    def step(_, state):
        towers, moments = state
        updates, moments = optimiser.update(_gradient(layout, *towers), moments)
        return optax.apply_updates(towers, updates), moments

    towers = (zeros, start)
    state = towers, optimiser.init(towers)
    (relevance, examination), _ = jax.lax.fori_loop(0, steps, step, state)
    return jax.tree.map(jax.nn.sigmoid, (relevance, examination))


def _gradient(layout: _Layout, relevance: list[jax.Array], examination: jax.Array):
    """Of the mean cross-entropy, with respect to the towers' logits.

    By relevance it is the sum of (r o - c) (1 - r) / (1 - r o), by examination the same with
    1 - o for 1 - r. Written out it needs no logarithm.
    """
    rows = layout.shown.sum(1)[:, None]
    examined = layout.spread(jax.nn.sigmoid(examination))
    by_relevance, by_examination = [], []
    for block, logits, o in zip(layout.blocks, relevance, examined, strict=True):
        r = jax.nn.sigmoid(logits)[:, None]
        error = (block.weight * r * o - block.clicks) / jnp.maximum(1 - r * o, EPSILON)
        by_relevance.append((error * (1 - r)).sum(1) / rows)
        by_examination.append(error * (1 - o))
    return by_relevance, layout.collect(by_examination) / rows


def _check_start(rates: ClickRates, start: np.ndarray, steps: int, *, low: float, high: float):
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


def _estimate(rates, layout, relevance: list[jax.Array], examination: jax.Array) -> Estimate:
    everyone = np.zeros((len(rates.rate), rates.features), np.float32)
    for block, values in zip(layout.blocks, relevance, strict=True):
        everyone[:, np.asarray(block.feature)] = values
    return Estimate(everyone, np.asarray(examination))

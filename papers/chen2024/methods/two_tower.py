"""The two towers of Chen et al. (2024), with a parameter per document and per bias factor."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from twotowers.fitting.tiles import ClickRates, Layout, lay_out
from twotowers.methods.alternation import RateEstimate, fitted_of, rates_of, starts_of
from twotowers.methods.task import Fitted, Task

EPSILON = 1e-8
"""The least 1 - r o by which errors are divided."""
LEARNING_RATE = 0.01

FACTORS = True


def fit(task: Task, *, steps: int = 20_000) -> list[Fitted]:
    """Fit every lane's training log from logits of relevance 0 and of examination N(0, 1).

    Args:
        task: see `twotowers.methods.alternation.fit`.
        steps: 20,000 published.
    """
    rates = rates_of(task)
    start = starts_of(task, rates, draw="standard_normal")
    return fitted_of(task, rates, fit_two_tower(rates, start, steps=steps))


def fit_two_tower(rates: ClickRates, logits: np.ndarray, *, steps: int) -> RateEstimate:
    """Two towers: r and o are sigmoids, trained on cross-entropy by Adam on all rows at once.

    The loss is the mean over rows of -c ln(r o) - (1 - c) ln(1 - r o) (Appendix C.3), the learning
    rate 0.01; relevance logits start at 0, those of o [lanes, factors] at N(0, 1), and there are
    20,000 steps, as published.
    """
    layout = lay_out(rates)
    zeros = layout.by_layer(np.zeros((len(logits), rates.features)), jnp.float32)
    towers = zeros, jnp.asarray(logits, jnp.float32)
    relevance, examination = _descend(layout, towers, jnp.int32(steps))
    relevance = layout.by_feature(relevance, rates.features)
    return RateEstimate(relevance, np.asarray(examination), steps)


@jax.jit
def _descend(layout: Layout, towers: tuple, steps: jax.Array):
    optimiser = optax.adam(LEARNING_RATE)

    def step(_, state):
        towers, moments = state
        updates, moments = optimiser.update(_gradient(layout, *towers), moments)
        return optax.apply_updates(towers, updates), moments

    state = towers, optimiser.init(towers)
    (relevance, examination), _ = jax.lax.fori_loop(0, steps, step, state)
    return jax.tree.map(jax.nn.sigmoid, (relevance, examination))


def _gradient(layout: Layout, relevance: list[list[jax.Array]], examination: jax.Array):
    """Of the mean cross-entropy, with respect to the towers' logits.

    By relevance it is the sum of (r o - c) (1 - r) / (1 - r o), by examination the same with
    1 - o for 1 - r. Written out it needs no logarithm.
    """
    rows = layout.shown.sum(1)[:, None]
    examined = layout.spread(jax.nn.sigmoid(examination))
    by_relevance, by_examination = [], []
    for block, layers, o in zip(layout.blocks, relevance, examined, strict=True):
        each = []
        for cells, logits in zip(block.layers, layers, strict=True):
            r = jax.nn.sigmoid(logits)[:, None]
            error = cells.weight * r * o - cells.clicks
            each.append((r, error / jnp.maximum(1 - r * o, EPSILON)))
        by_relevance.append([(error * (1 - r)).sum(1) / rows for r, error in each])
        by_examination.append([error * (1 - o) for _, error in each])
    return by_relevance, layout.collect(by_examination) / rows

"""Postulate 4: which tower learns first?

PAL is trained on expected clicks, so that no noise
hides the order, and looked at along the way: how much of the loss does each tower explain alone,
its scores shifted by the best constant?
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from flax import nnx
from scipy.optimize import minimize_scalar

from twotowers.files.rankings import pad, read_rankings
from twotowers.logs.policies import exposure, policy_scores
from twotowers.models.position_based import PositionBased
from twotowers.randomness import stream
from twotowers.towers.dense import DenseTower
from twotowers.towers.two_towers import two_towers

GPU = True

LOOKS = 40
"""How often training is looked at, evenly by the logarithm of its steps."""


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    positions: int,
    weights: list[float],
    layers: list[int],
    observation: list[int],
    learning_rate: float,
    batch: int,
    steps: int,
    share: float,
) -> pd.DataFrame:
    """Per policy, tower and step, the share of the loss explained; and the steps to a given share.

    Explained is the loss of the best constant, less that of a tower's scores and the best constant,
    over the same of both towers at the end. "Steps to share" are those until a tower alone explains
    `share` of what both explain at the end; one more than there are steps if it never does.
    `weights` are those of the label in the policy's score, on training queries; `layers` and
    `observation` widths of the hidden layers of both towers, trained by Adam on `batch` queries a
    step.
    """
    lists = read_rankings(inputs.train).first(queries)
    features = jnp.asarray(pad(lists.features, lists.offsets, positions))
    chance = PositionBased().chance(pad(lists.label, lists.offsets, positions), positions)
    looks = np.unique(np.geomspace(1, steps, LOOKS).astype(int))
    dense = partial(DenseTower, activation="relu", normalise="batch")
    rows = []
    for weight in weights:
        rng = stream("postulate4", seed)
        scores = policy_scores(lists.label, weight, rng=rng)
        shown = exposure(lists, scores, 0, positions, rng=rng).astype(np.float32)
        shown = pad(shown, lists.offsets, positions)
        model = two_towers(
            partial(dense, layers=layers),
            width=features.shape[-1],
            positions=positions,
            seed=seed,
            examination=partial(dense, layers=observation),
        )
        how = {"learning_rate": learning_rate, "batch": batch, "seed": seed}
        curves = _trained(model, features, shown, shown * chance, looks, **how)
        for tower, curve in curves.items():
            at = {"mixing_weight": float(weight), "tower": tower}
            rows += [
                {**at, "metric": "explained", "step": step, "value": value}
                for step, value in zip(looks, curve, strict=True)
            ]
            reached = [*looks[curve >= share], steps + 1][0]
            rows.append({**at, "metric": "steps_to_share", "value": float(reached)})
    return pd.DataFrame(rows).assign(position=None)


def _trained(
    model,
    features: jax.Array,
    shown: np.ndarray,
    clicked: np.ndarray,
    looks: np.ndarray,
    *,
    learning_rate: float,
    batch: int,
    seed: int,
) -> dict[str, np.ndarray]:
    """Share of the loss that each tower alone, and both, explain at every look."""
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    state = optax.adam(learning_rate).init(params)
    data = features, jnp.asarray(shown), jnp.asarray(clicked, jnp.float32)
    rng, values = stream("postulate4 batches", seed), []
    query, document, position = np.nonzero(shown)
    chance = clicked[query, document, position]
    constant = _loss(np.zeros_like(chance), chance)
    for number in range(1, looks[-1] + 1):
        index = rng.choice(len(features), min(batch, len(features)), replace=False)
        params, rest, state = _step(graph, learning_rate, params, rest, state, index, *data)
        if number in looks:
            f, g = (np.asarray(each, float) for each in _parts(graph, params, rest, features))
            f, g = f[query, document], g[position]
            each = {"observation": g, "relevance": f, "both": f + g}
            values.append({name: constant - _loss(own, chance) for name, own in each.items()})
    table = pd.DataFrame(values)
    return {name: table[name].to_numpy() / table["both"].iloc[-1] for name in table}


KEY = 0
"""Of random draws in a training step. Nothing is dropped here: a key asks for the statistics of the
batch."""


@partial(jax.jit, static_argnums=(0, 1))
def _step(graph, learning_rate: float, params, rest, state, index, features, shown, clicked):
    """Parameters, the rest of the model, and Adam's state after a step on some queries."""
    features, shown, clicked = (each[index] for each in (features, shown, clicked))

    def loss(params):
        towers = nnx.merge(graph, params, rest, copy=True)
        cells = towers.cell_losses(features, shown, clicked, jax.random.key(KEY))
        return cells.sum() / shown.sum(), nnx.split(towers, nnx.Param, ...)[2]

    gradient, rest = jax.grad(loss, has_aux=True)(params)
    updates, state = optax.adam(learning_rate).update(gradient, state, params)
    return optax.apply_updates(params, updates), rest, state


@partial(jax.jit, static_argnums=0)
def _parts(graph, params, rest, features: jax.Array):
    """Attraction logits of all documents, and examination logits."""
    towers = nnx.merge(graph, params, rest, copy=True)
    key = jax.random.key(KEY)
    return towers.relevance(features, key), towers.examination_for(key)


def _loss(logits: np.ndarray, chance: np.ndarray) -> float:
    """Mean loss of the logits and the best constant."""

    def shifted(constant: float) -> float:
        moved = logits + constant
        return float(np.mean(np.logaddexp(0, moved) - chance * moved))

    return minimize_scalar(shifted, bounds=(-20, 20), method="bounded").fun

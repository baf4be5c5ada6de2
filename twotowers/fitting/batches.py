"""The order of units (queries or sessions) in training: shared by lanes, or per lane.

NumPy draws it. XLA would compile for seconds what NumPy does in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass

from twotowers.randomness import stream


def batch_order(rng: np.random.Generator, units: int, batch: int, steps: int) -> np.ndarray:
    """[steps, batch] unit indices, from random passes over all units, one after the other.

    In one call, the numbers of uses of any two units differ by at most one.
    """
    passes = -(-steps * batch // units)
    order = np.concatenate([rng.permutation(units) for _ in range(passes)])
    return order[: steps * batch].reshape(steps, batch).astype(np.int32)


@register_dataclass
@dataclass(frozen=True)
class Own:
    """The units that have data in each lane's log: the lane's own units.

    Attributes:
        order: [lanes, units] indices of all units, with the lane's own units first.
        size: [lanes] number of the lane's own units.
    """

    order: jax.Array
    size: jax.Array

    def shuffled(self, rng: np.random.Generator) -> np.ndarray:
        """[lanes, units] each lane's own units in random order, then the others."""
        return np.stack(
            [
                np.append(rng.permutation(order[:size]), order[size:])
                for order, size in zip(np.asarray(self.order), np.asarray(self.size), strict=True)
            ]
        )


def own_units(objective, lanes: int) -> Own:
    """Each lane's own units in an objective (see `twotowers.losses.likelihood`)."""
    has = np.asarray(jax.vmap(objective.has)(jnp.arange(lanes)))
    order = np.argsort(~has, kind="stable").astype(np.int32)
    return Own(jnp.asarray(order), jnp.asarray(has.sum(-1)))


def draw_epochs(
    seed: int, epochs: range, *, units: int, batch: int, steps: int | None, own: Own | None
) -> tuple[np.ndarray, np.ndarray]:
    """The batches of some epochs. They depend on the seed and the number of the epoch only.

    Args:
        seed: any integer.
        epochs: numbers of epochs.
        units, batch: of the objective, and per step.
        steps: per epoch. None goes through each lane's own units.
        own: the lanes' own units, without `steps`.

    Returns:
        unit indices [epochs, steps, batch], or [epochs, lanes, units] as `Own.shuffled` has them;
        and data of random keys [epochs, steps, 2], of as many steps as the largest lane needs.
    """
    orders, keys = [], []
    for epoch in epochs:
        rng = stream("batches", seed, epoch)
        if own is None:
            orders.append(batch_order(rng, units, batch, steps))
        else:
            orders.append(own.shuffled(rng))
        count = steps or -(-int(np.asarray(own.size).max()) // batch)
        keys.append(rng.integers(2**32, size=(count, 2), dtype=np.uint32))
    return np.stack(orders), np.stack(keys)

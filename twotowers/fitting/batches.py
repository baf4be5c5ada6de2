"""Which units a step of training sees: of all lanes the same, or each lane's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass


def batch_order(key: jax.Array, units: int, batch: int, steps: int) -> jax.Array:
    """[steps, batch] unit indices: random passes over all units, one after the other.

    Within the call no unit is used once more than any other is by more than one.
    """
    passes = -(-steps * batch // units)
    order = jax.vmap(partial(jax.random.permutation, x=units))(jax.random.split(key, passes))
    return order.reshape(-1)[: steps * batch].reshape(steps, batch)


@register_dataclass
@dataclass(frozen=True)
class Own:
    """Of which units each lane's log has something.

    Attributes:
        order: [lanes, units] indices of all units, the lane's own first.
        size: [lanes] how many are its own.
    """

    order: jax.Array
    size: jax.Array

    def shuffled(self, lane, key: jax.Array) -> jax.Array:
        """[units] the lane's own units in random order; the others behind them."""
        order = self.order[lane]
        chance = jax.random.uniform(key, order.shape)
        return order[jnp.argsort(jnp.where(jnp.arange(order.size) < self.size[lane], chance, 2))]


def own_units(objective, lanes: int) -> Own:
    """What each lane's log has, of an objective (see `twotowers.objectives.likelihood`)."""
    has = np.asarray(jax.vmap(objective.has)(jnp.arange(lanes)))
    return Own(jnp.asarray(np.argsort(~has, kind="stable")), jnp.asarray(has.sum(-1)))

"""The order of units (queries or sessions) in training: shared by lanes, or per lane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass


def batch_order(key: jax.Array, units: int, batch: int, steps: int) -> jax.Array:
    """[steps, batch] unit indices, from random passes over all units, one after the other.

    In one call, the numbers of uses of any two units differ by at most one.
    """
    passes = -(-steps * batch // units)
    order = jax.vmap(partial(jax.random.permutation, x=units))(jax.random.split(key, passes))
    return order.reshape(-1)[: steps * batch].reshape(steps, batch)


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

    def shuffled(self, lane, key: jax.Array) -> jax.Array:
        """[units] the lane's own units in random order, then the others."""
        order = self.order[lane]
        chance = jax.random.uniform(key, order.shape)
        return order[jnp.argsort(jnp.where(jnp.arange(order.size) < self.size[lane], chance, 2))]


def own_units(objective, lanes: int) -> Own:
    """Each lane's own units in an objective (see `twotowers.objectives.likelihood`)."""
    has = np.asarray(jax.vmap(objective.has)(jnp.arange(lanes)))
    return Own(jnp.asarray(np.argsort(~has, kind="stable")), jnp.asarray(has.sum(-1)))

"""Two small tables, by quotient and by remainder, instead of one of all query-document pairs."""

import math

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.lane import Lanes
from twotowers.towers.parts import BASELINE, Ratio, SmallTable, Tower


class QuotientRemainderTower(Tower):
    """logit = baseline + q[pair // m] r[pair mod m] (Shi et al. 2020; Hager 2026, 5.4.2).

    m is the number of pairs divided by `ratio`, rounded up. No two pairs share both factors. The
    table q starts at 1: if both factors were small, both gradients would be small.

    Args:
        pairs: number of query-document pairs.
        ratio: pairs per row of the table r, as in `SmallTable`.
        rngs: source of randomness.
    """

    BY_PAIR = True

    def __init__(self, pairs: int, *, ratio: Lanes[Ratio] = 10.0, rngs: nnx.Rngs):
        self.remainder = SmallTable(pairs, ratio, rngs)
        quotients = math.ceil(pairs / min(rows for _, rows in self.remainder.sizes))
        self.quotient = nnx.Param(jnp.ones(max(quotients, 1)))
        self.baseline = nnx.Param(jnp.float32(BASELINE))

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits. `key` is not used."""
        rows = self.remainder.rows()
        quotient, remainder = self.quotient[...], self.remainder.values[...]
        return self.baseline[...] + quotient[pairs // rows] * remainder[pairs % rows]

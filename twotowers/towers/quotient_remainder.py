"""Two small tables, by quotient and by remainder, instead of one of all query-document pairs."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.parts import Tower, drawn, rows_of

READS = "pairs"


class QuotientRemainderTower(Tower):
    """logit = baseline + q[pair // m] r[pair mod m] (Shi et al. 2020; thesis, Section 5.4.2).

    m is the number of pairs divided by `ratio`, rounded up. No two pairs share both factors. The
    table q starts at 1: if both factors were small, both gradients would be small.

    Args:
        pairs: number of query-document pairs.
        ratio: pairs per row of the table r, in [1, 1e9].
        baseline, variance, rngs: as in `BaselineTower`. The variance is that of r.

    Raises:
        InputError: the ratio or the variance is out of range.
    """

    def __init__(
        self,
        pairs: int,
        *,
        ratio: float = 10.0,
        baseline: float = 1.0,
        variance: float = 1e-5,
        rngs: nnx.Rngs,
    ):
        self.remainders = rows_of(pairs, ratio)
        self.remainder = drawn(self.remainders, variance, rngs)
        self.quotient = nnx.Param(jnp.ones(max(math.ceil(pairs / self.remainders), 1)))
        self.baseline = nnx.Param(jnp.float32(baseline))

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits. `key` is not used."""
        quotient, remainder = pairs // self.remainders, pairs % self.remainders
        return self.baseline[...] + self.quotient[...][quotient] * self.remainder[...][remainder]

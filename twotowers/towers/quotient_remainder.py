"""Two small tables, by quotient and by remainder, instead of one of all query-document pairs."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.lane import Lane
from twotowers.towers.parts import Tower, drawn, number, rows_at, tables_of

READS = "pairs"
LANES = ("ratio",)


class QuotientRemainderTower(Tower):
    """logit = baseline + q[pair // m] r[pair mod m] (Shi et al. 2020; thesis, Section 5.4.2).

    m is the number of pairs divided by `ratio`, rounded up. No two pairs share both factors. The
    table q starts at 1: if both factors were small, both gradients would be small.

    Args:
        pairs: number of query-document pairs.
        ratio: pairs per row of the table r, in [1, 1e9]. Lanes hold the largest of their tables,
            and use the first rows of them.
        baseline, variance, rngs: as in `BaselineTower`. The variance is that of r.

    Raises:
        InputError: the ratio or the variance is out of range.
    """

    def __init__(
        self,
        pairs: int,
        *,
        ratio: float | Lane = 10.0,
        baseline: float = 1.0,
        variance: float = 1e-5,
        rngs: nnx.Rngs,
    ):
        tables = tables_of(pairs, ratio)
        self.ratio = number(ratio, field="ratio", low=1, high=1e9)
        self.tables = tuple(tables.items())
        self.remainder = drawn(max(tables.values()), variance, rngs)
        quotients = math.ceil(pairs / min(tables.values()))
        self.quotient = nnx.Param(jnp.ones(max(quotients, 1)))
        self.baseline = nnx.Param(jnp.float32(baseline))

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits. `key` is not used."""
        rows = rows_at(self.ratio, self.tables)
        quotient, remainder = pairs // rows, pairs % rows
        return self.baseline[...] + self.quotient[...][quotient] * self.remainder[...][remainder]

"""A parameter per query-document pair, as a difference from one that all pairs share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.parts import Tower, drawn

READS = "pairs"


class BaselineTower(Tower):
    """logit = baseline + difference of the pair (thesis, Section 5.4.2).

    A pair that is hardly ever shown stays near the baseline, which all pairs learn together.

    Args:
        pairs: how many there are.
        baseline: where the shared logit starts.
        variance: of the differences that training starts from; above 0.
    """

    def __init__(
        self, pairs: int, *, baseline: float = 1.0, variance: float = 1e-5, rngs: nnx.Rngs
    ):
        self.pairs = pairs
        self.differences = drawn(pairs, variance, rngs)
        self.baseline = nnx.Param(jnp.float32(baseline))

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits; `key` is accepted for symmetry, not used."""
        return self.baseline[...] + self.differences[...][pairs]

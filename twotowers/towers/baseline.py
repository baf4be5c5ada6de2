"""A parameter per query-document pair, added to a baseline that all pairs share."""

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.parts import BASELINE, Tower, drawn


class BaselineTower(Tower):
    """logit = baseline + difference[pair] (Hager 2026, Section 5.4.2).

    All pairs train the baseline. A pair that is rarely shown stays near it.

    Example:
        >>> tower = BaselineTower(3, rngs=nnx.Rngs(0))
        >>> tower(jnp.array([[0, 2]])).round(1).tolist()
        [[1.0, 1.0]]
    """

    BY_PAIR = True

    def __init__(self, pairs: int, *, rngs: nnx.Rngs):
        self.pairs = pairs
        self.differences = drawn(pairs, rngs)
        self.baseline = nnx.Param(jnp.float32(BASELINE))

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits. `key` is not used."""
        return self.baseline[...] + self.differences[...][pairs]

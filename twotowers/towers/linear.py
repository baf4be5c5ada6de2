"""The linear tower of Hager et al. 2025, Section 7."""

import jax
from flax import nnx

from twotowers.towers.parts import Tower, linear, rows


class LinearTower(Tower):
    """logit = w x: one weight per feature, no intercept."""

    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.layer = linear(width, 1, bias=False, rngs=rngs)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits. `key` is not used."""
        return self.layer(rows(features)).reshape(features.shape[:-1])

"""The deep tower of Hager et al. 2025, Section 7, as in the published code."""

import jax
from flax import nnx

from twotowers.towers.lane import Lanes
from twotowers.towers.parts import Rate, Tower, drop, elu, linear, matmul, number, rows

UNITS = 32


class DeepTower(Tower):
    """Two hidden layers of 32 ELU units, each with optional dropout while training."""

    def __init__(self, width: int, *, dropout: Lanes[Rate] = 0.0, rngs: nnx.Rngs):
        self.first = linear(width, UNITS, rngs=rngs)
        self.second = linear(UNITS, UNITS, rngs=rngs)
        self.last = linear(UNITS, 1, rngs=rngs)
        self.dropout = number(dropout)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits. Dropout needs a `key`."""
        keys = [None, None] if key is None else jax.random.split(key)
        hidden = drop(elu(self.first(rows(features))), self.dropout, keys[0])
        hidden = matmul(hidden, self.second.kernel[...]) + self.second.bias[...]
        hidden = drop(elu(hidden), self.dropout, keys[1])
        return self.last(hidden).reshape(features.shape[:-1])

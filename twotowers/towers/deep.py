"""The deep tower of Hager et al. 2025, Section 7, as in the published code."""

from __future__ import annotations

import jax
from flax import nnx

from twotowers.towers.lane import Lane
from twotowers.towers.parts import HIGHEST_RATE, Tower, drop, elu, linear, matmul, number, rows


class DeepTower(Tower):
    """Two hidden layers of ELU units, each with optional dropout.

    Args:
        width: number of features.
        hidden: units per hidden layer.
        dropout: rate of dropout after each hidden layer while training, in [0, 0.99]; a number or
            a lane.
        rngs: source of randomness.
    """

    def __init__(
        self, width: int, *, hidden: int = 32, dropout: float | Lane = 0.0, rngs: nnx.Rngs
    ):
        self.first = linear(width, hidden, rngs=rngs)
        self.second = linear(hidden, hidden, rngs=rngs)
        self.last = linear(hidden, 1, rngs=rngs)
        self.dropout = number(dropout, field="dropout", low=0, high=HIGHEST_RATE)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits. Dropout needs a `key`."""
        keys = [None, None] if key is None else jax.random.split(key)
        hidden = drop(elu(self.first(rows(features))), self.dropout, keys[0])
        hidden = matmul(hidden, self.second.kernel[...]) + self.second.bias[...]
        hidden = drop(elu(hidden), self.dropout, keys[1])
        return self.last(hidden).reshape(features.shape[:-1])

"""The deep tower of Hager et al. 2025, Section 7, and its published code."""

from __future__ import annotations

import jax
from flax import nnx

from twotowers.towers.lane import Lane
from twotowers.towers.parts import HIGHEST_RATE, Tower, drop, elu, matmul, number, rows

LANES = ("dropout",)


class DeepTower(Tower):
    """Two hidden layers of 32 ELU units, with dropout while training if asked for."""

    def __init__(
        self, width: int, *, hidden: int = 32, dropout: float | Lane = 0.0, rngs: nnx.Rngs
    ):
        self.first = nnx.Linear(width, hidden, rngs=rngs)
        self.second = nnx.Linear(hidden, hidden, rngs=rngs)
        self.last = nnx.Linear(hidden, 1, rngs=rngs)
        self.dropout = number(dropout, field="dropout", low=0, high=HIGHEST_RATE)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits; without a `key` nothing is dropped."""
        keys = [None, None] if key is None else jax.random.split(key)
        hidden = drop(elu(self.first(rows(features))), self.dropout, keys[0])
        hidden = matmul(hidden, self.second.kernel[...]) + self.second.bias[...]
        hidden = drop(elu(hidden), self.dropout, keys[1])
        return self.last(hidden).reshape(features.shape[:-1])

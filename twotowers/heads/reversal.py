"""Gradient reversal on the examination part (Zhang et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.heads.head import Head
from twotowers.towers.lane import Lane
from twotowers.towers.parts import number, reverse, value_of

LANES = ("scale",)


class Reversal(Head):
    """An adversary that guesses clicks y from examination o alone: (w r(o) + b - y)^2.

    r is the identity forwards; backwards it multiplies the gradient by -scale. So w and b learn
    to guess, and the examination part learns to be of no use for it, which it would be if it
    explained relevance. Every impression is a guess: n of a cell, c of them clicked, cost
    c (1 - guess)^2 + (n - c) guess^2.
    """

    needs = ("examination",)

    def __init__(self, *, scale: float | Lane = 1.0, rngs: nnx.Rngs):
        self.scale = number(scale, field="scale", low=0, high=1e6)
        self.layer = nnx.Linear(1, 1, rngs=rngs)

    def losses(
        self,
        parts: Mapping[str, jax.Array],
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
    ) -> jax.Array:
        reversed_ = reverse(parts["examination"], value_of(self.scale))
        guess = self.layer(reversed_[..., None])[..., 0]
        shown, clicked = shown.astype(jnp.float32), clicked.astype(jnp.float32)
        return clicked * jnp.square(1 - guess) + (shown - clicked) * jnp.square(guess)

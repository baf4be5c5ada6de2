"""Gradient reversal on the examination part (Zhang et al. 2023, Section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import InputError, nearest
from twotowers.heads.head import Head
from twotowers.towers.lane import Lane
from twotowers.towers.parts import number, reverse, value_of

LANES = ("scale",)
CHOICES = {"label": ("click", "relevance", "prediction")}


class Reversal(Head):
    """An adversary that guesses a label y from examination o alone: (w r(o) + b - y)^2 (Eq. 9).

    r is the identity forwards; backwards it multiplies the gradient by -scale. So w and b learn
    to guess, and the examination part learns to be of no use for it, which it would be if it
    explained relevance. Every impression is a guess: n of a cell, c of them clicked, cost
    c (1 - guess)^2 + (n - c) guess^2 where the label is the click, and n (y - guess)^2 where it is
    the document's.
    """

    needs = ("examination",)

    def __init__(self, *, scale: float | Lane = 1.0, label: str = "click", rngs: nnx.Rngs):
        """A freshly initialised adversary.

        Args:
            scale: eta, at least 0; may be a lane.
            label: what is guessed: the 'click'; the document's 'relevance'; or the 'prediction' of
                a relevance tower that was trained before.
            rngs: initialises w and b.

        Raises:
            InputError: the scale is out of range, or the label unknown.
        """
        self.scale = number(scale, field="scale", low=0, high=1e6)
        if label not in CHOICES["label"]:
            raise InputError(
                f"{label!r} is unknown", field="label", expected=nearest(label, CHOICES["label"])
            )
        self.labels = () if label == "click" else (label,)
        self.layer = nnx.Linear(1, 1, rngs=rngs)

    def losses(
        self,
        parts: Mapping[str, jax.Array],
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
        labels: Mapping[str, jax.Array],
    ) -> jax.Array:
        reversed_ = reverse(parts["examination"], value_of(self.scale))
        guess = self.layer(reversed_[..., None])[..., 0]
        shown, clicked = shown.astype(jnp.float32), clicked.astype(jnp.float32)
        if self.labels:
            (label,) = self.labels
            return shown * jnp.square(labels[label] - guess)
        return clicked * jnp.square(1 - guess) + (shown - clicked) * jnp.square(guess)

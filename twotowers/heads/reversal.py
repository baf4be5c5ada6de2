"""Gradient reversal on the examination part (Zhang et al. 2023, Section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import check_choice, check_range
from twotowers.heads.head import LABELS, Head
from twotowers.towers.lane import Lane
from twotowers.towers.parts import linear, number, reverse, value_of

CLICKS = ("click", *LABELS)
"""What the adversary may predict."""


class Reversal(Head):
    """An adversary that predicts a label y from examination o alone: (w r(o) + b - y)^2 (Eq. 9).

    r returns its input, and multiplies the gradient by -scale. So w and b learn to predict y, and
    the examination part learns logits from which y cannot be predicted. This counteracts
    examination that explains relevance. A cell with n impressions, c of them clicked, has the loss

        c (1 - guess)^2 + (n - c) guess^2    if the label is the click
        n (y - guess)^2                      if the label is the document's
    """

    needs = ("examination",)

    def __init__(
        self,
        *,
        scale: float | Lane = 1.0,
        label: Literal["click", "relevance", "prediction"] = "click",
        weight: float | None = None,
        rngs: nnx.Rngs,
    ):
        """Initialise an adversary.

        Args:
            scale: eta in the paper, in [0, 1e6]; a number or a lane.
            label: the label y: the 'click', the document's 'relevance', or the 'prediction' of a
                relevance tower that was trained before.
            weight: where w starts, in [-1e3, 1e3]; drawn if None.
            rngs: source of randomness.

        Raises:
            InputError: the scale or the weight is out of range, or the label is unknown.
        """
        self.scale = number(scale, field="scale", low=0, high=1e6)
        check_choice(label, CLICKS, field="label")
        self.labels = () if label == "click" else (label,)
        self.layer = linear(1, 1, rngs=rngs)
        if weight is not None:
            check_range(weight, field="weight", low=-1e3, high=1e3)
            self.layer.kernel[...] = jnp.full((1, 1), weight)

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

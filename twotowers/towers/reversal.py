"""Gradient reversal on the examination part (Zhang et al. 2023, Section 3.2)."""

from collections.abc import Mapping
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from pydantic import Field

from twotowers.errors import InputError
from twotowers.towers.head import Head
from twotowers.towers.lane import Lanes
from twotowers.towers.parts import linear, number, reverse, value_of


class Reversal(Head):
    """An adversary that predicts a label y from examination alone: (w r(h) + b - y)^2 (Eq. 9).

    h is the last hidden layer of the examination tower, as the paper has it ("on top of the sharing
    hidden layers"), or its logit. r returns its input, and multiplies the gradient by -scale. So w
    and b learn to predict y, and the layers below r learn an h from which y cannot be predicted.
    This counteracts examination that explains relevance. A hidden h leaves the last layer to
    the clicks. A cell with n impressions, c of them clicked, has the loss

        c (1 - guess)^2 + (n - c) guess^2    if the label is the click
        n (y - guess)^2                      if the label is the document's
    """

    needs = ("examination",)

    def __init__(
        self,
        units: int = 0,
        *,
        scale: Lanes[Annotated[float, Field(ge=0, le=1e6)]] = 1.0,
        label: Literal["click", "relevance", "prediction"] = "click",
        reads: Literal["logit", "hidden"] = "logit",
        weight: Annotated[float, Field(ge=-1e3, le=1e3)] | None = None,
        rngs: nnx.Rngs,
    ):
        """Initialise an adversary.

        Args:
            units: width of the examination tower's last hidden layer.
            scale: eta in the paper, in [0, 1e6]; a number or a lane.
            label: the label y: the 'click', the document's 'relevance', or the 'prediction' of a
                relevance tower that was trained before.
            reads: what it predicts from: the examination 'logit', or the 'hidden' layer below it.
            weight: where all of w start, in [-1e3, 1e3]; drawn if None.
            rngs: source of randomness.
        """
        self.scale = number(scale)
        self.labels = () if label == "click" else (label,)
        self.reads_hidden = reads == "hidden"
        if self.reads_hidden and not units:
            raise InputError(
                "examination has no hidden layer",
                field="reads",
                expected="'logit', or an examination of kind dense with layers",
            )
        width = units if self.reads_hidden else 1
        self.layer = linear(width, 1, rngs=rngs)
        if weight is not None:
            self.layer.kernel[...] = jnp.full((width, 1), weight)

    def losses(
        self,
        parts: Mapping[str, jax.Array],
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
        labels: Mapping[str, jax.Array],
    ) -> jax.Array:
        read = parts["hidden"] if self.reads_hidden else parts["examination"][..., None]
        guess = self.layer(reverse(read, value_of(self.scale)))[..., 0]
        shown, clicked = shown.astype(jnp.float32), clicked.astype(jnp.float32)
        if self.labels:
            (label,) = self.labels
            return shown * jnp.square(labels[label] - guess)
        return clicked * jnp.square(1 - guess) + (shown - clicked) * jnp.square(guess)

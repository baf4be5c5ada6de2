"""A tower of dense layers with any widths, an activation, dropout and normalisation."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from pydantic import ConfigDict, Strict

from twotowers.towers.lane import Lanes
from twotowers.towers.parts import Count, Rate, Tower, drop, elu, linear, matmul, number, rows

ACTIVATIONS = {"elu": elu, "relu": jax.nn.relu, "tanh": jnp.tanh}

MOMENTUM = 0.9
"""Momentum of running statistics: r <- .9 r + .1 batch. Epochs are short, so a higher momentum
would leave the statistics behind the parameters."""

NORMALISATIONS: dict[str, Callable] = {
    "batch": lambda width, rngs: nnx.BatchNorm(width, momentum=MOMENTUM, rngs=rngs),
    "layer": lambda width, rngs: nnx.LayerNorm(width, rngs=rngs),
    "none": lambda width, rngs: None,
}


@dataclass(frozen=True)
class Layer:
    """A hidden layer with a dropout rate of its own."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=False)

    width: Count
    dropout: Rate | None = None


Layers = Annotated[tuple[Count | Layer, ...], Strict(False)]
"""Hidden layers: for each its width, or {width, dropout}."""


class DenseTower(Tower):
    """Hidden layers h <- drop(activation(normalise(h W + b))), and a linear last layer.

    Initialisation is Flax's default. Batch normalisation (Ioffe and Szegedy, 2015) is

        h <- g (h - mean) / sqrt(var + 1e-5) + s

    over all rows of a batch, except for padding, which is rows of zeros. Without a `key` it uses
    running means of both statistics. They are no parameters, and each lane has its own. Layers with
    batch normalisation have no b. The mean would cancel any b, so its gradient would be a rounding
    error, and optimisers that divide by a gradient's size would still move it.
    """

    def __init__(
        self,
        width: int,
        *,
        layers: Layers,
        activation: Literal["elu", "relu", "tanh"] = "elu",
        dropout: Lanes[Rate] = 0.0,
        normalise: Literal["none", "batch", "layer"] = "none",
        rngs: nnx.Rngs,
    ):
        """Initialise a tower.

        Args:
            width: numbers per row of input.
            layers: for each hidden layer its width, or a `Layer` with a dropout rate of its own.
            activation: 'elu', 'relu' or 'tanh'.
            dropout: rate of dropout after the other hidden layers.
            normalise: 'batch', 'layer' or 'none'.
            rngs: source of randomness.

        Example:
            >>> tower = DenseTower(3, layers=[8, 4], activation="relu", rngs=nnx.Rngs(0))
            >>> tower(jnp.ones((5, 2, 3))).shape
            (5, 2)
        """
        each = [layer if isinstance(layer, Layer) else Layer(layer) for layer in layers]
        widths, self.own = [layer.width for layer in each], tuple(layer.dropout for layer in each)
        self.activation = activation
        self.dropout = number(dropout)
        sizes = [width, *widths]
        self.units = widths[-1] if widths else 0
        self.layers = nnx.List(
            linear(above, below, bias=normalise != "batch", rngs=rngs)
            for above, below in pairwise(sizes)
        )
        self.norms = nnx.List(NORMALISATIONS[normalise](each, rngs) for each in widths)
        self.last = linear(sizes[-1], 1, rngs=rngs)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] -> [...] logits. A `key` turns on dropout and the batch's own statistics."""
        return self.last(self.hidden(features, key)).reshape(features.shape[:-1])

    def hidden(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] -> [rows, units] outputs of the last hidden layer."""
        hidden = rows(features)
        counted = (hidden != 0).any(-1, keepdims=True)
        keys = [None] * len(self.own) if key is None else jax.random.split(key, len(self.own))
        for layer, norm, own, its in zip(self.layers, self.norms, self.own, keys, strict=True):
            hidden = matmul(hidden, layer.kernel[...])
            hidden = hidden if layer.bias is None else hidden + layer.bias[...]
            if isinstance(norm, nnx.BatchNorm):
                hidden = norm(hidden, use_running_average=key is None, mask=counted)
            elif norm is not None:
                hidden = norm(hidden)
            rate = self.dropout if own is None else own
            hidden = drop(ACTIVATIONS[self.activation](hidden), rate, its)
        return hidden

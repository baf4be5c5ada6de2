"""A tower of dense layers with any widths, an activation, dropout and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import check_choice, check_range
from twotowers.towers.lane import Lane
from twotowers.towers.parts import HIGHEST_RATE, Tower, drop, elu, linear, matmul, number, rows

ACTIVATIONS = {"elu": elu, "relu": jax.nn.relu, "tanh": jnp.tanh}

MOMENTUM = 0.9
"""Momentum of running statistics: r <- .9 r + .1 batch. Epochs are short, so a higher momentum
would leave the statistics behind the parameters."""

NORMALISATIONS: dict[str, Callable] = {
    "batch": lambda width, rngs: nnx.BatchNorm(width, momentum=MOMENTUM, rngs=rngs),
    "layer": lambda width, rngs: nnx.LayerNorm(width, rngs=rngs),
    "none": lambda width, rngs: None,
}


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
        layers: Sequence[int | Mapping],
        activation: Literal["elu", "relu", "tanh"] = "elu",
        dropout: float | Lane = 0.0,
        normalise: Literal["none", "batch", "layer"] = "none",
        rngs: nnx.Rngs,
    ):
        """Initialise a tower.

        Args:
            width: numbers per row of input.
            layers: for each hidden layer its width, or {width, dropout} for a dropout rate of its
                own.
            activation: 'elu', 'relu' or 'tanh'.
            dropout: rate of dropout after the other hidden layers, in [0, 0.99]; a number or a
                lane.
            normalise: 'batch', 'layer' or 'none'.
            rngs: source of randomness.

        Example:
            >>> tower = DenseTower(3, layers=[8, 4], activation="relu", rngs=nnx.Rngs(0))
            >>> tower(jnp.ones((5, 2, 3))).shape
            (5, 2)
        """
        for field, given, known in [
            ("activation", activation, ACTIVATIONS),
            ("normalise", normalise, NORMALISATIONS),
        ]:
            check_choice(given, known, field=field)
        widths, self.own = zip(*map(_layer, layers), strict=True) if layers else ((), ())
        self.activation = activation
        self.dropout = number(dropout, field="dropout", low=0, high=HIGHEST_RATE)
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


def _layer(given: int | Mapping) -> tuple[int, float | None]:
    """The width of a hidden layer, and its own dropout rate or None."""
    said = {"width": given} if not isinstance(given, Mapping) else given
    for name in said:
        check_choice(name, ("width", "dropout"), field="layers")
    width = check_range(said.get("width"), field="layers", low=1, high=10**6, whole=True)
    if "dropout" not in said:
        return width, None
    rate = check_range(said["dropout"], field="layers.dropout", low=0, high=HIGHEST_RATE)
    return width, float(rate)

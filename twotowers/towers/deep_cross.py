"""The deep and cross network, version 2: products of features, and dense layers."""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.lane import Lanes
from twotowers.towers.parts import Count, Rate, Tower, drop, elu, linear, matmul, number, rows

LAYERS = 2
"""Cross layers, and dense layers, as in the thesis (Section 5.6.2), with 32 hidden units."""


class DeepCrossTower(Tower):
    """x_0 = norm(x), x_l = x_0 * (x_{l-1} W_l + b_l) + x_{l-1}; and dense layers.

    A cross layer multiplies every feature with a linear combination of all: after l of them there
    are products of l + 1 features (DCN-V2; Wang et al. 2021, Eq. 1). Stacked, dense layers read the
    last x_l. In parallel, they read x_0, and the logit is linear in both. A dense layer is
    h <- drop(elu(norm(h V + c))). Norms are layer normalisation, each with its own scale and
    shift. Initialised by Flax's defaults.

    Args:
        width: numbers per row.
        hidden: units of a dense layer.
        combination: "stacked" or "parallel".
        dropout: rate behind every dense layer.
        rngs: initialises all parameters.

    Example:
        >>> tower = DeepCrossTower(3, rngs=nnx.Rngs(0))
        >>> tower(jax.numpy.ones((2, 5, 3))).shape
        (2, 5)
    """

    def __init__(
        self,
        width: int,
        *,
        hidden: Count = 32,
        combination: Literal["stacked", "parallel"] = "stacked",
        dropout: Lanes[Rate] = 0.0,
        rngs: nnx.Rngs,
    ):
        self.dropout = number(dropout)
        self.input_norm = nnx.LayerNorm(width, rngs=rngs)
        self.crosses = nnx.List(linear(width, width, rngs=rngs) for _ in range(LAYERS))
        sizes = [width, *[hidden] * (LAYERS - 1)]
        self.layers = nnx.List(linear(size, hidden, rngs=rngs) for size in sizes)
        self.norms = nnx.List(nnx.LayerNorm(hidden, rngs=rngs) for _ in sizes)
        self.parallel = combination == "parallel"
        self.last = linear(hidden + width * self.parallel, 1, rngs=rngs)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits; without a `key` nothing is dropped."""
        first = crossed = self.input_norm(rows(features))
        for layer in self.crosses:
            crossed = first * _affine(layer, crossed) + crossed
        hidden = first if self.parallel else crossed
        keys = [None] * len(self.layers) if key is None else jax.random.split(key, len(self.layers))
        for layer, norm, its in zip(self.layers, self.norms, keys, strict=True):
            hidden = drop(elu(norm(_affine(layer, hidden))), self.dropout, its)
        if self.parallel:
            hidden = jnp.concatenate([crossed, hidden], axis=-1)
        return self.last(hidden).reshape(features.shape[:-1])


def _affine(layer: nnx.Linear, inputs: jax.Array) -> jax.Array:
    return matmul(inputs, layer.kernel[...]) + layer.bias[...]

"""What towers and heads are made of: activations, products, dropout, and numbers that are lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import check_range
from twotowers.towers.lane import Lane

HIGHEST_RATE = 0.99
"""The highest dropout rate: at 1 nothing is left to scale up."""


class Tower(nnx.Module):
    """From what a document or a position is known by, to one logit.

    A tower lies in a file of its own, whose name is its name in a configuration. It is made by
    `Tower(width, *, <options>, rngs)`, of so many numbers per row. Its options are its
    keyword-only parameters; those that the file names in `LANES` may differ between lanes.
    """

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] -> [...] logits; there is a `key` in training steps, and only there."""
        raise NotImplementedError


def rows_of(pairs: int, ratio: float) -> int:
    """The rows of a table that is `ratio` times smaller than the number of pairs; 1 at least.

    Raises:
        InputError: the ratio is below 1.
    """
    check_range(ratio, field="ratio", low=1, high=1e9)
    return max(math.ceil(pairs / ratio), 1)


def tables_of(pairs: int, ratio: float | Lane) -> dict[float, int]:
    """The rows of a table (`rows_of`) at the ratio, or at each that lanes have."""
    ratios = ratio.values if isinstance(ratio, Lane) else (ratio,)
    return {float(each): rows_of(pairs, each) for each in ratios}


def rows_at(ratio: float | Constant, tables: Sequence[tuple[float, int]]) -> int | jax.Array:
    """The rows at a ratio: a constant of the program, or the lane's own.

    They are looked up. In float32, the division of a large number of pairs would be rounded.
    """
    if not isinstance(ratio, nnx.Variable):
        return dict(tables)[ratio]
    ratios, rows = (jnp.asarray(column) for column in zip(*tables, strict=True))
    return rows[jnp.argmin(jnp.abs(ratios - ratio[...]))]


def drawn(rows: int, variance: float, rngs: nnx.Rngs) -> nnx.Param:
    """[rows] numbers with mean 0 and that variance.

    Raises:
        InputError: the variance is negative.
    """
    check_range(variance, field="variance", low=0, high=1e6)
    return nnx.Param(jnp.sqrt(variance) * jax.random.normal(rngs.params(), (rows,)))


# Numbers that are not trained.


class Constant(nnx.Variable):
    """A number of a module that is not trained, and that each lane has its own of.

    Its metadata `column` names it. `twotowers.fitting.gradient.fit` fills it in.
    """


def number(value: float | Lane, *, field: str, low: float, high: float) -> float | Constant:
    """What a module keeps of a number that may be a lane.

    Raises:
        InputError: it, or one of the lanes' values, is out of range.
    """
    values = value.values if isinstance(value, Lane) else (value,)
    for each in values:
        check_range(each, field=field, low=low, high=high)
    if isinstance(value, Lane):
        return Constant(jnp.float32(values[0]), column=value.column)
    return float(value)


def value_of(value: float | Constant) -> float | jax.Array:
    """A number as formulas need it: a constant of the program, or the lane's own."""
    return value[...] if isinstance(value, nnx.Variable) else value


# Layers.


def drop(
    hidden: jax.Array,
    rate: float | Constant,
    key: jax.Array | None,
    shape: tuple[int, ...] | None = None,
) -> jax.Array:
    """Dropout: h b / (1 - rate) with b ~ Bernoulli(1 - rate), whose expectation is h.

    Lanes share the draws; of two rates, the higher drops what the lower does, and more.

    Args:
        hidden: [...].
        rate: the probability that an entry is 0.
        key: draws; without one nothing is dropped.
        shape: of the draws, if `hidden` is to be repeated.
    """
    if key is None or (isinstance(rate, float) and not rate):
        return hidden
    rate = value_of(rate)
    kept = jax.random.bernoulli(key, 1 - rate, hidden.shape if shape is None else shape)
    return hidden * kept / (1 - rate)


def rows(features: jax.Array) -> jax.Array:
    """[documents, width]: XLA multiplies one matrix a fifth faster than a stack of lists."""
    return features.reshape(-1, features.shape[-1])


@jax.custom_jvp
def elu(inputs: jax.Array) -> jax.Array:
    """Exponential linear unit; its derivative is computed from its value, with no second exp.

    By exp instead of expm1, which costs twice as much: absolutely as exact (1e-7), as a hidden
    unit's value has to be, though not relatively near 0.
    """
    return jnp.where(inputs > 0, inputs, jnp.exp(jnp.minimum(inputs, 0)) - 1)


@elu.defjvp
def _elu_jvp(primals, tangents):
    value = elu(primals[0])
    return value, jnp.where(primals[0] > 0, 1, value + 1) * tangents[0]


@jax.custom_vjp
def matmul(rows: jax.Array, weights: jax.Array) -> jax.Array:
    """rows @ weights; for the weights' gradient the rows are transposed first.

    With lanes, XLA multiplies the copy more than twice as fast as rows read column by column.
    """
    return rows @ weights


def _matmul_gradients(saved, gradient):
    rows, weights = saved
    return gradient @ weights.T, jax.lax.optimization_barrier(rows.T) @ gradient


matmul.defvjp(lambda *inputs: (matmul(*inputs), inputs), _matmul_gradients)


@jax.custom_vjp
def reverse(inputs: jax.Array, scale: float | jax.Array) -> jax.Array:
    """The inputs; their gradient is -scale times what it was (Ganin and Lempitsky, 2015)."""
    return inputs


reverse.defvjp(
    lambda inputs, scale: (inputs, scale),
    lambda scale, gradient: (-scale * gradient, jnp.zeros_like(scale)),
)

"""Building blocks of towers and heads: activations, products, dropout, numbers that are lanes."""

import math
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from pydantic import Field
from scipy.special import ndtr, ndtri

from twotowers.towers.lane import Lane, values_of

CUT_DEVIATION = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / (ndtr(2) - ndtr(-2)))
"""Standard deviation of a standard normal distribution that is cut at -2 and 2, .8796."""

HIGHEST_RATE = 0.99
"""The highest dropout rate. At rate 1 the scale 1 / (1 - rate) would be infinite."""
Rate = Annotated[float, Field(ge=0, le=HIGHEST_RATE)]
"""A dropout rate."""
Ratio = Annotated[float, Field(ge=1, le=1e9)]
"""Pairs per row of a table."""
BASELINE, VARIANCE = 1.0, 1e-5
"""Where parameters of pairs start: a common value, and the variance of differences from it."""
Count = Annotated[int, Field(ge=1, le=10**6)]
"""Units of a layer."""


class Tower(nnx.Module):
    """A module that maps the features or number of a document or position to one logit.

    Its file's name is its name in a configuration. `Tower(width, *, <options>, rngs)` builds it,
    with `width` numbers per row of input. The keyword-only parameters are its options, which their
    annotations check: `Lanes[Rate]` is a rate, or several, which are lanes.

    Attributes:
        BY_PAIR: whether it gets numbers of query-document pairs instead of features.
        units: width of the last hidden layer that `hidden` tells; 0 if it tells none. The logit is
            then `last` of it.
    """

    BY_PAIR: ClassVar[bool] = False
    units: int = 0

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] -> [...] logits. Only training steps pass a `key`."""
        raise NotImplementedError

    def hidden(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] -> [rows, units] outputs of the last hidden layer."""
        raise NotImplementedError


def rows_of(pairs: int, ratio: float) -> int:
    """Number of rows of a table with one row per `ratio` pairs, rounded up and at least 1."""
    return max(math.ceil(pairs / ratio), 1)


class SmallTable(nnx.Module):
    """A table of parameters with a row per `ratio` query-document pairs, 1 to 1e9.

    Lanes hold the largest of their tables, and use the first rows of it.
    """

    def __init__(self, pairs: int, ratio: float | Lane, rngs: nnx.Rngs):
        self.sizes = tuple((float(each), rows_of(pairs, each)) for each in values_of(ratio))
        self.ratio = number(ratio)
        self.values = drawn(max(rows for _, rows in self.sizes), rngs)

    def rows(self) -> int | jax.Array:
        """The number of rows in use: a constant of the program, or the lane's own.

        It is looked up. In float32, the division of a large number of pairs would be rounded.
        """
        if not isinstance(self.ratio, nnx.Variable):
            return dict(self.sizes)[self.ratio]
        ratios, rows = (jnp.asarray(column) for column in zip(*self.sizes, strict=True))
        return rows[jnp.argmin(jnp.abs(ratios - self.ratio[...]))]


def drawn(rows: int, rngs: nnx.Rngs) -> nnx.Param:
    """[rows] parameters drawn from a normal distribution with mean 0 and variance `VARIANCE`."""
    return nnx.Param(math.sqrt(VARIANCE) * _normal(rngs.params(), (rows,)))


# Starts. They have the distribution of Flax's defaults. NumPy draws them, because XLA would
# compile a program for each shape.


def linear(width: int, units: int, *, bias: bool = True, rngs: nnx.Rngs) -> nnx.Linear:
    """A layer h W + b. W starts as `lecun_normal` (LeCun et al., 1998), and b at 0."""
    return nnx.Linear(width, units, use_bias=bias, kernel_init=lecun_normal, rngs=rngs)


def embedding(size: int, *, rngs: nnx.Rngs) -> nnx.Embed:
    """One number for each of `size` things. They start at N(0, 1)."""
    return nnx.Embed(size, 1, embedding_init=_normal, rngs=rngs)


def lecun_normal(key: jax.Array, shape: tuple[int, int], dtype=jnp.float32) -> jax.Array:
    """Normal numbers with mean 0 and variance 1 / inputs, for weights [inputs, units].

    A normal distribution is cut at two standard deviations, and scaled to that variance.
    """
    drawn = ndtri(_generator(key).uniform(ndtr(-2), ndtr(2), shape))
    return jnp.asarray(drawn / (CUT_DEVIATION * math.sqrt(shape[0])), dtype)


def _normal(key: jax.Array, shape: tuple[int, ...], dtype=jnp.float32) -> jax.Array:
    return jnp.asarray(_generator(key).standard_normal(shape, np.float32), dtype)


def _generator(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


# Numbers that are not trained.


class Constant(nnx.Variable):
    """A number of a module that differs between lanes and is not trained.

    Its metadata `column` names it. `twotowers.fitting.gradient.fit` fills in each lane's value.
    """


def number(value: float | Lane) -> float | Constant:
    """The attribute for a number that may be a lane: a float, or a `Constant` if it is one."""
    if isinstance(value, Lane):
        return Constant(jnp.float32(value.values[0]), column=value.column)
    return float(value)


def value_of(value: float | Constant) -> float | jax.Array:
    """The number for formulas: the float itself, or the lane's own value of a `Constant`."""
    return value[...] if isinstance(value, nnx.Variable) else value


# Layers.


def drop(
    hidden: jax.Array,
    rate: float | Constant,
    key: jax.Array | None,
    shape: tuple[int, ...] | None = None,
) -> jax.Array:
    """Dropout: h b / (1 - rate) with b ~ Bernoulli(1 - rate). The expectation is h.

    Lanes share the draws. So the higher of two rates drops all that the lower one drops, and more.
    Without a key nothing is dropped. `shape` is that of the draws, to which `hidden` is broadcast.
    """
    if key is None or (isinstance(rate, float) and not rate):
        return hidden
    rate = value_of(rate)
    bits = _hashed(key, hidden.shape if shape is None else shape)
    kept = (bits >> 8) < jnp.uint32((1 - rate) * 2**24)
    return jnp.where(kept, hidden / (1 - rate), 0)


def _hashed(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """32 random bits per entry: a hash of its place and the key.

    It takes a fraction of the time of Threefry, which would be half of a small tower's training.
    Dropout needs no more. The hash is `lowbias32` of Wellons, "Prospecting
    for hash functions" (2018), once for each half of the key.
    """
    places = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    first, second = jax.random.key_data(key)
    return _mixed(_mixed(places ^ first) + second)


def _mixed(bits: jax.Array) -> jax.Array:
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


def rows(features: jax.Array) -> jax.Array:
    """[..., width] -> [rows, width], because XLA multiplies one matrix a fifth faster than a stack
    of matrices."""
    return features.reshape(-1, features.shape[-1])


@jax.custom_jvp
def elu(inputs: jax.Array) -> jax.Array:
    """Exponential linear unit, x for x > 0 and e^x - 1 otherwise.

    Its derivative is computed from its value, without a second exponential. expm1 would take twice
    the time of exp. exp(x) - 1 has the same absolute error of 1e-7, which is enough for a hidden
    unit, and a larger relative error near 0.
    """
    return jnp.where(inputs > 0, inputs, jnp.exp(jnp.minimum(inputs, 0)) - 1)


@elu.defjvp
def _elu_jvp(primals, tangents):
    value = elu(primals[0])
    return value, jnp.where(primals[0] > 0, 1, value + 1) * tangents[0]


@jax.custom_vjp
def matmul(rows: jax.Array, weights: jax.Array) -> jax.Array:
    """rows @ weights, with a faster gradient by the weights.

    The gradient copies the transposed rows first. With lanes, XLA multiplies this copy more than
    twice as fast as rows that it reads column by column.
    """
    return rows @ weights


def _matmul_gradients(saved, gradient):
    rows, weights = saved
    return gradient @ weights.T, jax.lax.optimization_barrier(rows.T) @ gradient


matmul.defvjp(lambda *inputs: (matmul(*inputs), inputs), _matmul_gradients)


@jax.custom_vjp
def reverse(inputs: jax.Array, scale: float | jax.Array) -> jax.Array:
    """Return the inputs, and multiply their gradient by -scale (Ganin and Lempitsky, 2015)."""
    return inputs


reverse.defvjp(
    lambda inputs, scale: (inputs, scale),
    lambda scale, gradient: (-scale * gradient, jnp.zeros_like(scale)),
)

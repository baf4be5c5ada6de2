"""Relevance and bias towers (Flax NNX), and the additive two-tower model.

Architectures and initialisation are those of Hager et al. 2025, Section 7 and its
published code: Flax's defaults everywhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import InputError, nearest


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
def product(rows: jax.Array, weights: jax.Array) -> jax.Array:
    """rows @ weights; for the weights' gradient the rows are transposed first.

    With lanes, XLA multiplies the copy more than twice as fast as rows read column by column.
    """
    return rows @ weights


def _product_gradients(saved, gradient):
    rows, weights = saved
    return gradient @ weights.T, jax.lax.optimization_barrier(rows.T) @ gradient


product.defvjp(lambda *inputs: (product(*inputs), inputs), _product_gradients)


class LinearTower(nnx.Module):
    """One weight per feature, no intercept."""

    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.layer = nnx.Linear(width, 1, use_bias=False, rngs=rngs)

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits; `key` is accepted for symmetry, not used."""
        return self.layer(_rows(features)).reshape(features.shape[:-1])


class DeepTower(nnx.Module):
    """Two hidden layers of 32 ELU units, with dropout while training if asked for."""

    def __init__(self, width: int, *, hidden: int = 32, dropout: float = 0.0, rngs: nnx.Rngs):
        self.first = nnx.Linear(width, hidden, rngs=rngs)
        self.second = nnx.Linear(hidden, hidden, rngs=rngs)
        self.last = nnx.Linear(hidden, 1, rngs=rngs)
        self.dropout = dropout

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] logits; without a `key` nothing is dropped."""
        keys = [None, None] if key is None else jax.random.split(key)
        hidden = self._drop(elu(self.first(_rows(features))), keys[0])
        hidden = product(hidden, self.second.kernel[...]) + self.second.bias[...]
        hidden = self._drop(elu(hidden), keys[1])
        return self.last(hidden).reshape(features.shape[:-1])

    def _drop(self, hidden: jax.Array, key: jax.Array | None) -> jax.Array:
        if key is None or not self.dropout:
            return hidden
        kept = jax.random.bernoulli(key, 1 - self.dropout, hidden.shape)
        return hidden * kept / (1 - self.dropout)


def _rows(features: jax.Array) -> jax.Array:
    """[documents, width]: XLA multiplies one matrix a fifth faster than a stack of lists."""
    return features.reshape(-1, features.shape[-1])


class EmbeddingTower(nnx.Module):
    """One logit per query-document pair, looked up by its number."""

    def __init__(self, pairs: int, *, rngs: nnx.Rngs):
        self.logits = nnx.Embed(pairs, 1, rngs=rngs)

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits; `key` is accepted for symmetry, not used."""
        return self.logits(pairs)[..., 0]


@jax.jit
def scores(tower, inputs: jax.Array) -> jax.Array:
    """A trained tower's logits of its inputs, by one compiled function: [...]."""
    return tower(inputs)


class TwoTowers(nnx.Module):
    """Click logit = bias of the position + relevance of the document (Eq. 1).

    Attributes:
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
        bias: [positions, 1] embedding, the position bias logits.
    """

    def __init__(self, relevance: nnx.Module, positions: int, *, rngs: nnx.Rngs):
        self.relevance = relevance
        self.bias = nnx.Embed(positions, 1, rngs=rngs)

    @property
    def position_bias(self) -> jax.Array:
        """[positions] examination logits theta, identified up to a constant (Section 4.2)."""
        return self.bias.embedding[...][:, 0]

    def __call__(self, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """Click logits of each document at each position: [..., documents, positions]."""
        return self.relevance(inputs, key)[..., :, None] + self.position_bias


def two_towers(tower: str, *, width: int, pairs: int, positions: int, seed: int) -> TwoTowers:
    """A freshly initialised two-tower model.

    Args:
        tower: 'linear', 'deep' or 'embedding'.
        width: features per document (linear, deep).
        pairs: number of query-document pairs (embedding).
        positions: positions on the page.
        seed: initialises all parameters.

    Raises:
        InputError: the tower is unknown.
    """
    rngs = nnx.Rngs(seed)
    build = {
        "linear": lambda: LinearTower(width, rngs=rngs),
        "deep": lambda: DeepTower(width, rngs=rngs),
        "embedding": lambda: EmbeddingTower(pairs, rngs=rngs),
    }
    if tower not in build:
        raise InputError(f"{tower!r} is unknown", field="tower", expected=nearest(tower, build))
    return TwoTowers(build[tower](), positions, rngs=rngs)

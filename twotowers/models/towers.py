"""Relevance towers (Flax NNX), and a click model whose parts they give.

Architectures and initialisation are those of Hager et al. 2025, Section 7 and its
published code: Flax's defaults everywhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import InputError, nearest
from twotowers.models.additive import Additive
from twotowers.models.losses import cell_logits, cell_losses, click_losses
from twotowers.models.protocol import CellModel


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
        hidden = matmul(hidden, self.second.kernel[...]) + self.second.bias[...]
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
    """A click model with a relevance tower for attraction and a table for examination.

    It asks the click model what a click is; objectives ask it, and know no parts.

    Attributes:
        model: the click model, for example `twotowers.models.additive.Additive()`.
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
        bias: [positions, 1] embedding, the examination logits.
    """

    def __init__(self, model: CellModel, relevance: nnx.Module, positions: int, *, rngs: nnx.Rngs):
        self.model = model
        self.relevance = relevance
        self.bias = nnx.Embed(positions, 1, rngs=rngs)

    @property
    def examination(self) -> jax.Array:
        """[positions] examination logits."""
        return self.bias.embedding[...][:, 0]

    @property
    def position_bias(self) -> jax.Array:
        """[positions] what of examination is identified up to a constant (Section 4.2)."""
        return self.model.position_bias(self.examination)

    def __call__(self, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """Log-odds of a click of each document at each position: [..., documents, positions]."""
        attraction = self.relevance(inputs, key)[..., :, None]
        logits = cell_logits(self.model, attraction, self.examination)
        return jnp.broadcast_to(logits, (*attraction.shape[:-1], self.examination.size))

    def cell_losses(
        self,
        inputs: jax.Array,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array | None = None,
    ) -> jax.Array:
        """Negative log-likelihood of every cell of some pages: [..., documents, positions].

        Args:
            inputs: [..., documents, *] what the relevance tower reads.
            shown: [..., documents, positions] impressions.
            clicked: the same shape, clicks.
            key: draws what is dropped while training.
        """
        attraction = self.relevance(inputs, key)
        return cell_losses(self.model, attraction, self.examination, shown, clicked)

    def row_losses(
        self,
        inputs: jax.Array,
        document: jax.Array,
        position: jax.Array,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array | None = None,
    ) -> jax.Array:
        """Negative log-likelihood of listed cells only: [..., rows].

        Args:
            inputs: [..., documents, *] what the relevance tower reads.
            document, position: [..., rows] indices from 0 of each cell.
            shown, clicked: [..., rows] impressions and clicks; 0 impressions cost nothing.
            key: draws what is dropped while training.
        """
        attraction = jnp.take_along_axis(self.relevance(inputs, key), document, axis=-1)
        logits = cell_logits(self.model, attraction, self.examination[position])
        return click_losses(logits, shown, clicked)


def two_towers(
    tower: str,
    *,
    width: int,
    pairs: int,
    positions: int,
    seed: int,
    model: CellModel | None = None,
) -> TwoTowers:
    """A freshly initialised two-tower model.

    Args:
        tower: 'linear', 'deep' or 'embedding'.
        width: features per document (linear, deep).
        pairs: number of query-document pairs (embedding).
        positions: positions on the page.
        seed: initialises all parameters.
        model: what a click is; the additive model if None.

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
    return TwoTowers(model or Additive(), build[tower](), positions, rngs=rngs)

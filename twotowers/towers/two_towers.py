"""A click model whose parts come from towers, and the auxiliary losses of its heads.

Architectures are those of Hager et al. 2025, Section 7. Initialisation is Flax's default, as in
the published code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.losses.cells import cell_logits, cell_losses, click_losses
from twotowers.models.additive import Additive
from twotowers.models.protocol import CellModel
from twotowers.towers.deep import DeepTower
from twotowers.towers.embedding import EmbeddingTower
from twotowers.towers.lane import KNOWN, Lane
from twotowers.towers.linear import LinearTower
from twotowers.towers.parts import Constant, drop, embedding, number

TOWERS = {"linear": LinearTower, "deep": DeepTower, "embedding": EmbeddingTower}
"""Relevance towers that need no options."""

BUILD = Callable[..., nnx.Module]
"""Builds a tower or a head from a number of inputs and `rngs`."""


@jax.jit
def scores(tower, inputs: jax.Array) -> jax.Array:
    """Logits of a trained tower, compiled: inputs [..., documents, *] -> [..., documents]."""
    return tower(inputs)


class PositionTower(nnx.Module):
    """A tower over one-hot positions. Its first layer is an embedding of positions.

    Each position is one row of its input, however often it was shown. So batch normalisation
    weights all positions equally.
    """

    def __init__(self, build: BUILD, positions: int, *, rngs: nnx.Rngs):
        self.tower = build(positions, rngs=rngs)
        self.positions = positions

    def __call__(self, key: jax.Array | None = None) -> jax.Array:
        """[positions] logits."""
        return self.tower(jnp.eye(self.positions), key)

    def with_hidden(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[positions] logits, and [positions, units] outputs of the last hidden layer below them.

        One call makes both, because each call updates running statistics.
        """
        hidden = self.tower.hidden(jnp.eye(self.positions), key)
        return self.tower.last(hidden)[:, 0], hidden


class KnownExamination(nnx.Module):
    """Examination logits that are known and not trained. Each lane has its own."""

    def __init__(self, positions: int):
        self.logits = Constant(jnp.zeros(positions), column="examination")

    def __call__(self, key: jax.Array | None = None) -> jax.Array:
        """[positions] logits."""
        return self.logits[...]


class TwoTowers(nnx.Module):
    """A click model with a relevance tower for attraction, and a table or tower for examination.

    Objectives ask it for losses of cells and never read its parts.

    Attributes:
        model: the click model, for example `twotowers.models.additive.Additive()`.
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
        bias: the examination logits: an embedding [positions, 1], a `PositionTower` or a
            `KnownExamination`.
        dropout: rate of dropout of examination logits while training, in [0, 0.99]. It is drawn
            for each position of each unit (query or session) of a batch.
        heads: auxiliary losses, added to the losses of cells while training.
    """

    def __init__(
        self,
        model: CellModel,
        relevance: nnx.Module,
        positions: int,
        *,
        examination: BUILD | str | None = None,
        dropout: float | Lane = 0.0,
        heads: Sequence[BUILD] = (),
        rngs: nnx.Rngs,
    ):
        self.model = model
        self.relevance = relevance
        if examination is None:
            self.bias = embedding(positions, rngs=rngs)
        elif examination == KNOWN:
            self.bias = KnownExamination(positions)
        else:
            self.bias = PositionTower(examination, positions, rngs=rngs)
        self.dropout = number(dropout)
        self.heads = nnx.List(build(self.units, rngs=rngs) for build in heads)

    @property
    def examination(self) -> jax.Array:
        """[positions] examination logits."""
        return self.examination_for(None)

    @property
    def units(self) -> int:
        """Width of the last hidden layer of the examination tower; 0 if it has none."""
        return self.bias.tower.units if isinstance(self.bias, PositionTower) else 0

    def examination_for(self, key: jax.Array | None) -> jax.Array:
        """[positions] examination logits, those of a training step if there is a `key`."""
        if isinstance(self.bias, PositionTower | KnownExamination):
            return self.bias(None if key is None else jax.random.fold_in(key, 1))
        return self.bias.embedding[...][:, 0]

    def table(self, part: str) -> jax.Array | None:
        """[positions] logits of examination; None for a part per document."""
        return self.examination if part == "examination" else None

    def scaled(self, factor: float) -> TwoTowers:
        """The same towers with `factor` times the examination logits, held fixed."""
        held = nnx.clone(self)
        held.bias = KnownExamination(self.examination.size)
        held.bias.logits[...] = factor * self.examination
        return held

    def _examined(self, key: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Examination logits of a training step, and the hidden layer below, if heads read it."""
        if any(head.reads_hidden for head in self.heads):
            return self.bias.with_hidden(jax.random.fold_in(key, 1))
        return self.examination_for(key), None

    def _dropped(self, examination: jax.Array, units: tuple[int, ...], key: jax.Array) -> jax.Array:
        """[*units, positions] logits after dropout, or [positions] if the rate is 0."""
        if isinstance(self.dropout, float) and not self.dropout:
            return examination
        shape = (*units, examination.size)
        return drop(examination, self.dropout, jax.random.fold_in(key, 2), shape)

    def _with_heads(
        self,
        losses: jax.Array,
        attraction: jax.Array,
        examination: jax.Array,
        hidden: jax.Array | None,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
        labels: Mapping[str, jax.Array],
    ) -> jax.Array:
        """Losses of cells plus the losses of all heads."""
        parts = {"attraction": attraction, "examination": examination}
        parts |= {} if hidden is None else {"hidden": hidden}
        for place, head in enumerate(self.heads):
            its = jax.random.fold_in(key, 3 + place)
            losses = losses + head.losses(parts, shown, clicked, its, labels)
        return losses

    @property
    def position_bias(self) -> jax.Array | None:
        """[positions] position bias, identified up to a constant (Section 4.2).

        None if the click model has no examination: then no gradient reached the table.
        """
        if "examination" not in self.model.parts:
            return None
        return self.model.position_bias(self.examination)

    def cell_losses(
        self,
        inputs: jax.Array,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array | None = None,
        labels: Mapping[str, jax.Array] | None = None,
    ) -> jax.Array:
        """Negative log-likelihood of all cells of some queries: [..., documents, positions].

        With a `key`, as while training, dropout applies and the heads' losses are added. Inputs are
        [..., documents, *] of the relevance tower, impressions and clicks [..., documents,
        positions], and labels that heads read, by name, [..., documents].
        """
        attraction = self.relevance(inputs, key)
        if key is None:
            return cell_losses(self.model, attraction, self.examination, shown, clicked)
        examination, hidden = self._examined(key)
        used = self._dropped(examination, attraction.shape[:-1], key)
        # With dropout each unit has logits of its own, which all of its documents share.
        used = used[..., None, :] if used.ndim > 1 else used
        losses = cell_losses(self.model, attraction, used, shown, clicked)
        labels = {name: each[..., None] for name, each in (labels or {}).items()}
        parts = attraction[..., None], examination, hidden
        return self._with_heads(losses, *parts, shown, clicked, key, labels)

    def row_losses(
        self,
        inputs: jax.Array,
        document: jax.Array,
        position: jax.Array,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array | None = None,
        labels: Mapping[str, jax.Array] | None = None,
    ) -> jax.Array:
        """Negative log-likelihood of listed cells [..., rows]; 0 without impressions.

        `document` and `position` [..., rows] are indices from 0 of each cell.
        """
        attraction = jnp.take_along_axis(self.relevance(inputs, key), document, axis=-1)
        if key is None:
            logits = cell_logits(self.model, attraction, self.examination[position])
            return click_losses(logits, shown, clicked)
        examination, hidden = self._examined(key)
        used = self._dropped(examination, position.shape[:-1], key)
        own = used.ndim > 1
        used = jnp.take_along_axis(used, position, axis=-1) if own else used[position]
        losses = click_losses(cell_logits(self.model, attraction, used), shown, clicked)
        labels = {
            name: jnp.take_along_axis(each, document, axis=-1)
            for name, each in (labels or {}).items()
        }
        parts = attraction, examination[position], None if hidden is None else hidden[position]
        return self._with_heads(losses, *parts, shown, clicked, key, labels)


def two_towers(
    tower: str | BUILD,
    *,
    width: int,
    positions: int,
    seed: int,
    model: CellModel | None = None,
    examination: BUILD | str | None = None,
    dropout: float | Lane = 0.0,
    heads: Sequence[BUILD] = (),
) -> TwoTowers:
    """Build and initialise a two-tower model.

    Args:
        tower: 'linear', 'deep' or 'embedding', or a function that builds another tower.
        width: features per document; of a tower that reads numbers of pairs, how many these are.
        model: the click model; the additive one if None.
        examination: builds a tower of positions. None is a table. 'known' is for logits that
            `twotowers.fitting.gradient.fit` fills in.
        dropout: rate of dropout of examination logits, in [0, 0.99].
        heads: functions that build the heads.
    """
    rngs = nnx.Rngs(seed)
    relevance = (TOWERS[tower] if isinstance(tower, str) else tower)(width, rngs=rngs)
    return TwoTowers(
        model or Additive(),
        relevance,
        positions,
        examination=examination,
        dropout=dropout,
        heads=heads,
        rngs=rngs,
    )

"""A click model whose parts are given by towers, and what is added to its loss.

Architectures and initialisation are those of Hager et al. 2025, Section 7 and its
published code: Flax's defaults everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.errors import InputError, nearest
from twotowers.heads.head import Head
from twotowers.models.additive import Additive
from twotowers.models.losses import cell_logits, cell_losses, click_losses
from twotowers.models.protocol import CellModel
from twotowers.towers.deep import DeepTower
from twotowers.towers.embedding import EmbeddingTower
from twotowers.towers.lane import KNOWN, Lane
from twotowers.towers.linear import LinearTower
from twotowers.towers.parts import HIGHEST_RATE, Constant, drop, number

TOWERS = {"linear": LinearTower, "deep": DeepTower, "embedding": EmbeddingTower}
"""Relevance towers that need no options."""

BUILD = Callable[..., nnx.Module]
"""What makes a tower, of a number of inputs and `rngs`, or a head, of `rngs`."""


@jax.jit
def scores(tower, inputs: jax.Array) -> jax.Array:
    """A trained tower's logits of its inputs, by one compiled function: [...]."""
    return tower(inputs)


class PositionTower(nnx.Module):
    """A tower that reads positions, one-hot: its first layer is an embedding of them.

    Every position is one row, however often it was shown; so it counts in batch normalisation.
    """

    def __init__(self, build: BUILD, positions: int, *, rngs: nnx.Rngs):
        self.tower = build(positions, rngs=rngs)
        self.positions = positions

    def __call__(self, key: jax.Array | None = None) -> jax.Array:
        """[positions] logits."""
        return self.tower(jnp.eye(self.positions), key)


class KnownExamination(nnx.Module):
    """Examination logits that are given and not trained, each lane's own."""

    def __init__(self, positions: int):
        self.logits = Constant(jnp.zeros(positions), column="examination")

    def __call__(self, key: jax.Array | None = None) -> jax.Array:
        """[positions] logits."""
        return self.logits[...]


class TwoTowers(nnx.Module):
    """A click model with a relevance tower for attraction and a table for examination.

    It asks the click model what a click is; objectives ask it, and know no parts.

    Attributes:
        model: the click model, for example `twotowers.models.additive.Additive()`.
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
        bias: [positions, 1] embedding, the examination logits; or a `PositionTower` or
            `KnownExamination`, which give them.
        dropout: rate at which examination logits are dropped while training, drawn for each
            position of each unit (query or session) of a batch.
        heads: losses of their own, added to those of cells while training.
    """

    def __init__(
        self,
        model: CellModel,
        relevance: nnx.Module,
        positions: int,
        *,
        examination: BUILD | str | None = None,
        dropout: float | Lane = 0.0,
        heads: Sequence[Head] = (),
        rngs: nnx.Rngs,
    ):
        self.model = model
        self.relevance = relevance
        if examination is None:
            self.bias = nnx.Embed(positions, 1, rngs=rngs)
        elif examination == KNOWN:
            self.bias = KnownExamination(positions)
        else:
            self.bias = PositionTower(examination, positions, rngs=rngs)
        self.dropout = number(dropout, field="examination.dropout", low=0, high=HIGHEST_RATE)
        self.heads = nnx.List(heads)

    @property
    def examination(self) -> jax.Array:
        """[positions] examination logits."""
        return self.examination_for(None)

    def examination_for(self, key: jax.Array | None) -> jax.Array:
        """[positions] examination logits, as in a training step if there is a `key`."""
        if isinstance(self.bias, PositionTower | KnownExamination):
            return self.bias(None if key is None else jax.random.fold_in(key, 1))
        return self.bias.embedding[...][:, 0]

    def _dropped(self, examination: jax.Array, units: tuple[int, ...], key: jax.Array) -> jax.Array:
        """[positions] as they are, or [*units, positions] of which some are dropped."""
        if isinstance(self.dropout, float) and not self.dropout:
            return examination
        shape = (*units, examination.size)
        return drop(examination, self.dropout, jax.random.fold_in(key, 2), shape)

    def _with_heads(
        self,
        losses: jax.Array,
        attraction: jax.Array,
        examination: jax.Array,
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
        labels: Mapping[str, jax.Array],
    ) -> jax.Array:
        """Losses of cells, and those of all heads."""
        parts = {"attraction": attraction, "examination": examination}
        for place, head in enumerate(self.heads):
            its = jax.random.fold_in(key, 3 + place)
            losses = losses + head.losses(parts, shown, clicked, its, labels)
        return losses

    @property
    def position_bias(self) -> jax.Array | None:
        """[positions] what of examination is identified up to a constant (Section 4.2).

        None of a click model without that part, whose table nothing has moved.
        """
        if "examination" not in self.model.parts:
            return None
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
        labels: Mapping[str, jax.Array] | None = None,
    ) -> jax.Array:
        """Negative log-likelihood of every cell of some pages: [..., documents, positions].

        Args:
            inputs: [..., documents, *] what the relevance tower reads.
            shown: [..., documents, positions] impressions.
            clicked: the same shape, clicks.
            key: draws what is dropped; there is one while training, and only then.
            labels: [..., documents] what heads are told of documents, by name.
        """
        attraction = self.relevance(inputs, key)
        if key is None:
            return cell_losses(self.model, attraction, self.examination, shown, clicked)
        examination = self.examination_for(key)
        used = self._dropped(examination, attraction.shape[:-1], key)
        # Where each unit has its own, they are the same for all of its documents.
        used = used[..., None, :] if used.ndim > 1 else used
        losses = cell_losses(self.model, attraction, used, shown, clicked)
        labels = {name: each[..., None] for name, each in (labels or {}).items()}
        attraction = attraction[..., None]
        return self._with_heads(losses, attraction, examination, shown, clicked, key, labels)

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
        """Negative log-likelihood of listed cells only: [..., rows].

        Args:
            inputs: [..., documents, *] what the relevance tower reads.
            document, position: [..., rows] indices from 0 of each cell.
            shown, clicked: [..., rows] impressions and clicks; 0 impressions cost nothing.
            key: draws what is dropped; there is one while training, and only then.
            labels: [..., documents] what heads are told of documents, by name.
        """
        attraction = jnp.take_along_axis(self.relevance(inputs, key), document, axis=-1)
        if key is None:
            logits = cell_logits(self.model, attraction, self.examination[position])
            return click_losses(logits, shown, clicked)
        examination = self.examination_for(key)
        used = self._dropped(examination, position.shape[:-1], key)
        own = used.ndim > 1
        used = jnp.take_along_axis(used, position, axis=-1) if own else used[position]
        losses = click_losses(cell_logits(self.model, attraction, used), shown, clicked)
        labels = {
            name: jnp.take_along_axis(each, document, axis=-1)
            for name, each in (labels or {}).items()
        }
        examination = examination[position]
        return self._with_heads(losses, attraction, examination, shown, clicked, key, labels)


def two_towers(
    tower: str | BUILD,
    *,
    width: int,
    pairs: int,
    positions: int,
    seed: int,
    model: CellModel | None = None,
    examination: BUILD | str | None = None,
    dropout: float | Lane = 0.0,
    heads: Sequence[BUILD] = (),
) -> TwoTowers:
    """A freshly initialised two-tower model.

    Args:
        tower: 'linear', 'deep' or 'embedding', or what makes another tower of features.
        width: features per document (all but the embedding).
        pairs: number of query-document pairs (embedding).
        positions: positions on the page.
        seed: initialises all parameters.
        model: what a click is; the additive model if None.
        examination: what makes the tower of positions; a table of them if None; 'known' where
            `twotowers.fitting.gradient.fit` fills them in.
        dropout: of examination logits.
        heads: what makes each head.

    Raises:
        InputError: the tower is unknown, or the model has not the parts that a head needs.
    """
    rngs = nnx.Rngs(seed)
    model = model or Additive()
    if isinstance(tower, str):
        if tower not in TOWERS:
            raise InputError(
                f"{tower!r} is unknown", field="tower", expected=nearest(tower, TOWERS)
            )
        relevance = TOWERS[tower](pairs if tower == "embedding" else width, rngs=rngs)
    else:
        relevance = tower(width, rngs=rngs)
    towers = TwoTowers(
        model, relevance, positions, examination=examination, dropout=dropout, rngs=rngs
    )
    for build in heads:
        head = build(rngs=rngs)
        if missing := set(head.needs) - set(model.parts):
            raise InputError(
                f"the model {type(model).__name__} has no {', '.join(sorted(missing))}",
                field=f"heads.{type(head).__name__}",
                expected="a model with these parts",
            )
        towers.heads.append(head)
    return towers

"""A click model of pages whose parts come from towers and tables."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.models.chances import Chance
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION, ClickModel, losses


class PageTowers(nnx.Module):
    """A click model with a tower for each part per document, and a table for each other part.

    Attributes:
        model: the click model.
        towers: part -> tower, which maps inputs [..., documents, *] to logits [..., documents].
        tables: part -> logits per position, per jump or of the single probability. They start
            at 0, which is probability 1/2.
    """

    def __init__(
        self,
        model: ClickModel,
        build: Callable[..., nnx.Module],
        width: int,
        positions: int,
        *,
        rngs: nnx.Rngs,
    ):
        """Build towers and tables.

        Args:
            model: the click model.
            build: builds a tower of documents.
            width: numbers per document.
            positions: of a page.
            rngs: of starts.
        """
        self.model = model
        shapes = {PER_POSITION: (positions,), PER_JUMP: (positions, positions), ONCE: ()}
        towers, tables = {}, {}
        for part, kind in self.model.parts.items():
            if kind == PER_DOCUMENT:
                towers[part] = build(width, rngs=rngs)
            else:
                tables[part] = nnx.Param(jnp.zeros(shapes[kind]))
        self.towers, self.tables = nnx.Dict(towers), nnx.Dict(tables)

    def chances(
        self, inputs: jax.Array, documents: jax.Array, key: jax.Array | None = None
    ) -> dict[str, Chance]:
        """The chance of each part, laid out for pages.

        Args:
            inputs: [..., documents, *] the towers' inputs for the documents of each page's query.
            documents: [..., K] index among these of the document at each position.
            key: source of randomness of dropout. Given while training only.
        """
        logits = {part: table[...] for part, table in self.tables.items()}
        for number, (part, tower) in enumerate(self.towers.items()):
            own = None if key is None else jax.random.fold_in(key, number)
            logits[part] = jnp.take_along_axis(tower(inputs, own), documents, axis=-1)
        return {part: Chance.from_logits(each) for part, each in logits.items()}

    def row_losses(self, inputs, documents, position, shown, clicked, key=None) -> jax.Array:
        """-ln P(click or none, as observed | clicks above) at each position of pages: [..., K].

        The interface is that of `TwoTowers.row_losses`. Rows must be the positions of a page from
        top to bottom, because each click depends on those above it.
        """
        chance = self.model.conditional(self.chances(inputs, documents, key), clicked)
        return losses(chance, clicked, shown)

    def page_losses(self, inputs, documents, shown, clicked) -> tuple[jax.Array, jax.Array]:
        """-ln P(click or none, as observed), first not given other clicks, then given those above.

        Both are [..., K].
        """
        chances = self.chances(inputs, documents)
        alone = self.model.marginal(chances).broadcast(clicked.shape)
        given = self.model.conditional(chances, clicked)
        return losses(alone, clicked, shown), losses(given, clicked, shown)

    def scores(self, inputs: jax.Array) -> jax.Array:
        """Ranking scores: [..., documents], higher is better."""
        logits = {part: tower(inputs) for part, tower in self.towers.items()}
        return self.model.relevance({p: Chance.from_logits(each) for p, each in logits.items()})

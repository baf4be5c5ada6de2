"""A click model of pages whose parts come from towers and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.models.chances import Chance
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION, ClickModel, losses


class PageTowers(nnx.Module):
    """A click model with a tower for each part per document, and a table for each other part.

    Parts per position may have towers, too, which read the position and bias features of the
    document there (thesis, Listing 5.4).

    Attributes:
        model: the click model.
        towers: part -> tower, which maps inputs [..., documents, *] to logits [..., documents].
        places: part -> tower, which maps one-hot positions, followed by bias features, to logits.
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
        of_places: Callable[..., nnx.Module] | None = None,
        bias: tuple[Sequence[float], Sequence[float]] = ((), ()),
        rngs: nnx.Rngs,
    ):
        """Build towers and tables.

        Args:
            model: the click model.
            build: builds a tower of documents.
            width: numbers per document.
            positions: of a page.
            of_places: builds a tower of positions; None for tables.
            bias: mean and standard deviation of each bias feature, by which towers standardise.
            rngs: of starts.
        """
        self.model = model
        self.center, self.scale = (tuple(map(float, each)) for each in bias)
        shapes = {PER_POSITION: (positions,), PER_JUMP: (positions, positions), ONCE: ()}
        towers, places, tables = {}, {}, {}
        for part, kind in self.model.parts.items():
            if kind == PER_DOCUMENT:
                towers[part] = build(width, rngs=rngs)
            elif kind == PER_POSITION and of_places is not None:
                places[part] = of_places(positions + len(self.center), rngs=rngs)
            else:
                tables[part] = nnx.Param(jnp.zeros(shapes[kind]))
        self.towers, self.tables = nnx.Dict(towers), nnx.Dict(tables)
        self.places = nnx.Dict(places)

    def chances(
        self,
        inputs: jax.Array,
        documents: jax.Array,
        key: jax.Array | None = None,
        bias: jax.Array | None = None,
    ) -> dict[str, Chance]:
        """The chance of each part, laid out for pages.

        Args:
            inputs: [..., documents, *] the towers' inputs for the documents of each page's query.
            documents: [..., K] index among these of the document at each position.
            key: source of randomness of dropout. Given while training only.
            bias: [..., K, features] bias features of the document at each position.
        """
        logits = {part: table[...] for part, table in self.tables.items()}
        for number, (part, tower) in enumerate(self.towers.items()):
            own = None if key is None else jax.random.fold_in(key, number)
            logits[part] = jnp.take_along_axis(tower(inputs, own), documents, axis=-1)
        read = self._read(documents.shape, bias)
        for number, (part, tower) in enumerate(self.places.items(), start=len(self.towers)):
            own = None if key is None else jax.random.fold_in(key, number)
            logits[part] = tower(read, own)
        return {part: Chance.from_logits(each) for part, each in logits.items()}

    def row_losses(
        self, inputs, documents, position, shown, clicked, key=None, *, bias=None
    ) -> jax.Array:
        """-ln P(click or none, as observed | clicks above) at each position of pages: [..., K].

        The interface is that of `TwoTowers.row_losses`. Rows must be the positions of a page from
        top to bottom, because each click depends on those above it.
        """
        chance = self.model.conditional(self.chances(inputs, documents, key, bias), clicked)
        return losses(chance, clicked, shown)

    def page_losses(
        self, inputs, documents, shown, clicked, bias=None
    ) -> tuple[jax.Array, jax.Array]:
        """-ln P(click or none, as observed), first not given other clicks, then given those above.

        Both are [..., K].
        """
        chances = self.chances(inputs, documents, bias=bias)
        alone = self.model.marginal(chances).broadcast(clicked.shape)
        given = self.model.conditional(chances, clicked)
        return losses(alone, clicked, shown), losses(given, clicked, shown)

    def effects(self, bias: jax.Array, where: jax.Array) -> dict[str, jax.Array]:
        """By how much a unit of each bias feature changes the log-odds of each part per position.

        The number is the mean derivative over the documents of pages. For a linear tower it is the
        weight, divided by the feature's standard deviation.

        Args:
            bias: [pages, K, features].
            where: [pages, K] bool, whether there is a document.

        Returns:
            part -> [features].
        """

        def change(tower: nnx.Module) -> jax.Array:
            def logits(values: jax.Array) -> jax.Array:
                return tower(self._read(where.shape, values)).sum(where=where)

            return jax.grad(logits)(bias).sum((0, 1), where=where[..., None]) / where.sum()

        return {part: change(tower) for part, tower in self.places.items()}

    def _read(self, shape: tuple[int, ...], bias: jax.Array | None) -> jax.Array:
        """[*shape, K + features] what a tower of places reads: one-hot positions and bias features,
        these with mean 0 and deviation 1."""
        places = jnp.broadcast_to(jnp.eye(shape[-1]), (*shape, shape[-1]))
        if bias is None:
            return places
        scaled = (bias - jnp.asarray(self.center)) / jnp.asarray(self.scale)
        return jnp.concatenate([places, scaled], axis=-1)

    def scores(self, inputs: jax.Array) -> jax.Array:
        """Ranking scores: [..., documents], higher is better."""
        logits = {part: tower(inputs) for part, tower in self.towers.items()}
        return self.model.relevance({p: Chance.from_logits(each) for p, each in logits.items()})

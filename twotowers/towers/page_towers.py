"""A click model whose parts come from towers and tables, of whole pages."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.logs.described import Several
from twotowers.models.chances import Chance
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION, ClickModel, losses
from twotowers.towers.two_towers import BUILD

PAIR, FEATURES, PLACE, BIAS = "pair", "features", "position", "bias"
"""What a tower reads: the number of a document's pair or its features; and one-hot codes of the
position (of a part per jump, also of the last click), and further features of the place."""
OF_DOCUMENT = {(PAIR,), (FEATURES,)}
"""What a tower reads whose logit is the same wherever a document stands."""


class Reading(NamedTuple):
    """A tower of a part, and what it reads.

    Attributes:
        build: builds it from the numbers that it reads.
        reads: names of what it reads; one if it is `PAIR`.
    """

    build: BUILD
    reads: tuple[str, ...]


class PageTowers(nnx.Module):
    """A click model with a tower, a table or the tower of another part for each part.

    Attributes:
        model: the click model.
        towers: part -> tower, which maps inputs [..., *] to logits [...].
        tables: part -> logits per position, per jump or of the single probability. They start
            at 0, which is probability 1/2.
    """

    def __init__(
        self,
        model: ClickModel,
        parts: Mapping[str, Reading | str | None],
        widths: Mapping[str, int],
        positions: int,
        *,
        rngs: nnx.Rngs,
    ):
        """Build towers and tables.

        `parts`: part -> its tower, None for a table, or the part whose tower or table it shares.
        `widths` says how many numbers the log has of what towers read: pairs, features, further
        features of a place.
        """
        self.model, self.positions = model, positions
        shapes = {PER_POSITION: (positions,), PER_JUMP: (positions, positions), ONCE: ()}
        towers, tables, reads, shared = {}, {}, {}, {}
        for part, kind in self.model.parts.items():
            own = parts[part]
            if isinstance(own, str):
                shared[part] = own
            elif own is None:
                tables[part] = nnx.Param(jnp.zeros(shapes[kind]))
            else:
                places = positions * (1 + (kind == PER_JUMP))
                width = sum({PLACE: places, **widths}[name] for name in own.reads)
                towers[part], reads[part] = own.build(width, rngs=rngs), own.reads
        self.towers, self.tables = nnx.Dict(towers), nnx.Dict(tables)
        # Flax compares attributes by their hash.
        self._reads, self._shared = tuple(reads.items()), tuple(shared.items())

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """Part -> what its tower reads."""
        return dict(self._reads)

    @property
    def shared(self) -> dict[str, str]:
        """Part -> the part whose tower or table it shares."""
        return dict(self._shared)

    def chances(
        self, inputs: jax.Array | Several, documents: jax.Array, key: jax.Array | None = None
    ) -> dict[str, Chance]:
        """The chance of each part, laid out for pages.

        Inputs are [..., documents, *] for the documents of each page's query, of which `documents`
        [..., K] is the index at each position. A key, of dropout, is given while training only.
        """
        given = _named(inputs, documents.ndim)
        logits = {part: table[...] for part, table in self.tables.items()}
        for number, (part, tower) in enumerate(self.towers.items()):
            own = None if key is None else jax.random.fold_in(key, number)
            reads = self.reads[part]
            if reads in OF_DOCUMENT:
                of_documents = tower(given[reads[0]], own)
                logits[part] = jnp.take_along_axis(of_documents, documents, axis=-1)
                continue
            kind = self.model.parts[part]
            own_logits = tower(self._places(given, documents, reads, kind == PER_JUMP), own)
            of_document = kind == PER_DOCUMENT
            logits[part] = (
                jnp.broadcast_to(own_logits, documents.shape) if of_document else own_logits
            )
        return self._chances(logits)

    def _places(
        self, given: Mapping[str, jax.Array], documents: jax.Array, reads: tuple, jumps: bool
    ) -> jax.Array:
        """[..., K, *], or of jumps [..., K, K, *]: what a tower of places reads."""
        columns = []
        for name in reads:
            if name == PLACE:
                each = jnp.eye(self.positions)
            else:
                each = jnp.take_along_axis(given[name], documents[..., None], axis=-2)
            columns.append(each[..., None, :] if jumps else each)
        columns += [jnp.eye(self.positions)] if jumps else []
        shape = jnp.broadcast_shapes(*(each.shape[:-1] for each in columns))
        wide = [jnp.broadcast_to(each, (*shape, each.shape[-1])) for each in columns]
        return jnp.concatenate(wide, axis=-1)

    def _chances(self, logits: Mapping[str, jax.Array]) -> dict[str, Chance]:
        chances = {part: Chance.from_logits(each) for part, each in logits.items()}
        return chances | {part: chances[own] for part, own in self.shared.items() if own in chances}

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

    @property
    def scored(self) -> bool:
        """Whether a document has a score wherever it stands."""
        own = {self.shared.get(part, part) for part in self._of_documents}
        return bool(own) and all(self.reads[part] in OF_DOCUMENT for part in own)

    @property
    def _of_documents(self) -> list[str]:
        return [part for part, kind in self.model.parts.items() if kind == PER_DOCUMENT]

    def scores(self, inputs: jax.Array | Several) -> jax.Array:
        """Ranking scores: [..., documents], higher is better."""
        given, own = _named(inputs, 2), {self.shared.get(part, part) for part in self._of_documents}
        logits = {part: self.towers[part](given[self.reads[part][0]]) for part in own}
        return self.model.relevance(self._chances(logits))

    def table(self, part: str) -> jax.Array | None:
        """The logits of a part that does not depend on what a page shows: one per position, per
        jump (position, last click), or a single one. None for another part."""
        own = self.shared.get(part, part)
        if own in self.tables:
            return self.tables[own][...]
        if self.reads[own] != (PLACE,):
            return None
        jumps = self.model.parts[own] == PER_JUMP
        return self.towers[own](self._places({}, jnp.zeros(0), (PLACE,), jumps))


def _named(inputs: jax.Array | Several, ndim: int) -> Mapping[str, jax.Array]:
    """Inputs by the names of what towers read; numbers of pairs have as many axes as pages."""
    if isinstance(inputs, Several):
        return inputs.of
    return {PAIR if inputs.ndim == ndim else FEATURES: inputs}

"""Training of a cross-encoder on clicks and masked tokens, and the vectors that it gives documents.

A step takes some pages in the order of the log. Its loss is the mean cross-entropy of masked tokens
plus the mean over pages of a click loss, with equal weight (Hager 2026, Section 3.4).
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from twotowers.files.checkpoints import Checkpoint
from twotowers.towers.monobert import MonoBert
from twotowers.towers.sequences import Sequences, masked

POSITIONS = 50
"""Positions that have a parameter of bias."""

PAGES = 4_096
"""Pages whose texts are together in memory."""

DECAY, BETA2 = 0.01, 0.98
"""Of AdamW."""

SECONDS = 600
"""Between two checkpoints."""

TOGETHER = 20
"""Steps of one program. A program asks for its memory anew each time that it is called, which for a
small encoder takes as long as half a step."""

ClickLoss = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
"""(scores [pages, positions], bias [positions], clicks, where [pages, positions]) -> [pages]."""


@dataclass(frozen=True)
class Pretraining:
    """How an encoder is trained; the defaults are those of the thesis.

    Attributes:
        learning_rate: of AdamW.
        mask: the chance that a token of title or abstract is masked.
        documents: documents of a step. Pages are taken while they fit.
        pages: the most pages of a step.
    """

    learning_rate: float = 5e-5
    mask: float = 0.3
    documents: int = 256
    pages: int = 64


class Batch(NamedTuple):
    """The documents of some pages.

    Attributes:
        texts: [documents, length] each; those that fill up repeat the first.
        there: [documents] bool, False for those that fill up.
        place: [pages, positions] where in `texts` each page has its document.
        clicks, where: [pages, positions] bool; `where` is False where there is no document.
    """

    texts: Sequences
    there: np.ndarray
    place: np.ndarray
    clicks: np.ndarray
    where: np.ndarray


class ShownTexts(NamedTuple):
    """Pages of a log, which may have gaps, and the texts that they show.

    Attributes:
        tokens: [shown, length] of `sequences`, page after page.
        clicks, where: [pages, positions] bool; `where` is False where there is no document.
    """

    tokens: np.ndarray
    clicks: np.ndarray
    where: np.ndarray


def shown_texts(
    tokens: np.ndarray, document: np.ndarray, clicks: np.ndarray, where: np.ndarray
) -> Iterator[ShownTexts]:
    """Pages whose texts, `tokens` [documents, length] of `sequences`, memory holds, some at a time.

    `document` [pages, positions] are rows of these; any number where there is none.
    """
    for start in range(0, len(where), PAGES):
        rows = slice(start, start + PAGES)
        yield ShownTexts(tokens[document[rows][where[rows]]], clicks[rows], where[rows])


def forever(
    pages: Callable[[], Iterable[ShownTexts]], settings: Pretraining, *, marks: bool = False
) -> Iterator[Batch]:
    """The batches of a log, again and again: see `batches`."""
    while True:
        yield from batches(pages(), settings, marks=marks)


def batches(
    pages: Iterable[ShownTexts], settings: Pretraining, *, marks: bool = False
) -> Iterator[Batch]:
    """Whole pages in their order, as many at a time as fit; `marks` as of `sequences.marked`."""
    left: ShownTexts | None = None
    for some in pages:
        joined = (
            some if left is None else ShownTexts(*map(np.concatenate, zip(left, some, strict=True)))
        )
        *whole, left = _cut(joined, settings)
        yield from (_batch(each, settings, marks) for each in whole)
    if left is not None:
        yield _batch(left, settings, marks)


def _cut(pages: ShownTexts, settings: Pretraining) -> Iterator[ShownTexts]:
    """As many pages at a time as fit. More may fit to the last ones."""
    ends, start, before = np.cumsum(pages.where.sum(1)), 0, 0
    while start < len(ends):
        full = int(np.searchsorted(ends, before + settings.documents, side="right"))
        rows = slice(start, min(full, start + settings.pages))
        shown = slice(before, int(ends[rows][-1]))
        yield ShownTexts(pages.tokens[shown], pages.clicks[rows], pages.where[rows])
        start, before = rows.stop, shown.stop


def _batch(pages: ShownTexts, settings: Pretraining, marks: bool) -> Batch:
    place = np.zeros((settings.pages, pages.where.shape[1]), np.int32)
    place[: len(pages.where)][pages.where] = np.arange(len(pages.tokens))
    missing = settings.pages - len(pages.where)
    there = np.arange(settings.documents) < len(pages.tokens)
    texts = Sequences.of(pages.tokens[np.where(there, np.arange(len(there)), 0)], marks=marks)
    clicks, where = (np.pad(each, [(0, missing), (0, 0)])
                     for each in (pages.clicks & pages.where, pages.where))  # fmt: skip
    return Batch(texts, there, place, clicks, where)


def over_documents(pages: jax.Array, where: jax.Array) -> jax.Array:
    """[pages] means of pages, weighted so that their mean is that of all documents.

    The published network takes the pointwise losses of all documents of a step together. Pages
    without a document do not count.

    Example:
        >>> pages, where = jnp.array([2.0, 5.0]), jnp.array([[True, True], [True, False]])
        >>> over_documents(pages, where).mean().item()
        3.0
    """
    lengths = where.sum(1)
    return pages * lengths * (lengths > 0).sum() / jnp.maximum(lengths.sum(), 1)


class Biased(nnx.Module):
    """An encoder, and a bias for each position, which starts at N(0, 1)."""

    def __init__(self, encoder: MonoBert, rngs: nnx.Rngs):
        self.encoder = encoder
        self.bias = nnx.Param(jax.random.normal(rngs.params(), (POSITIONS,)))


def click_and_token_loss(
    model: Biased, batch: Batch, loss: ClickLoss, settings: Pretraining, key
) -> tuple[jax.Array, jax.Array]:
    """The click loss of a batch, a mean over pages, and the mean loss of its masked tokens."""
    masks, drops = jax.random.split(key)
    tokens, segments, text = batch.texts
    text = text & batch.there[:, None]
    hidden, chosen = masked(tokens, text, rate=settings.mask, key=masks)
    vectors = model.encoder(hidden, segments, drops)
    # Space for the masked tokens of a step, whose number varies: for the mean, if all tokens were
    # of texts. Should there be more, the last are not guessed.
    most = math.ceil(settings.mask * tokens.size)
    (place,) = jnp.nonzero(chosen.ravel(), size=most, fill_value=0)
    there = jnp.arange(most) < chosen.sum()
    guesses = jax.nn.log_softmax(
        model.encoder.guesses(vectors.reshape(-1, vectors.shape[-1])[place])
    )
    wrong = -jnp.take_along_axis(guesses, tokens.ravel()[place, None], axis=1)[:, 0]
    scores = model.encoder.relevance(vectors)[batch.place]
    pages = loss(scores, model.bias[: scores.shape[1]], batch.clicks, batch.where)
    shown = batch.where.any(1)
    return (
        jnp.where(shown, pages, 0).sum() / jnp.maximum(shown.sum(), 1),
        jnp.where(there, wrong, 0).sum() / jnp.maximum(there.sum(), 1),
    )


def pretrain(
    encoder: MonoBert,
    steps: Iterable[Batch],
    loss: ClickLoss,
    *,
    settings: Pretraining,
    seed: int,
    checkpoint: str | Path | None = None,
    about: Any = None,
) -> tuple[Biased, np.ndarray]:
    """Train an encoder, which stays as it is, on a batch per step.

    The trained encoder with its bias; [steps, 2] click loss and loss of masked tokens of those
    steps that were not taken before. A checkpoint keeps the state of training, so that one which
    was ended meanwhile goes on, with the same result. It stays, and the caller removes it. `about`
    are the data and the loss, in words and arrays: a state is of no use to others.
    """
    begin = Biased(nnx.clone(encoder), nnx.Rngs(seed))
    graph, params, rest = nnx.split(begin, nnx.Param, ...)

    kept = Checkpoint.of(checkpoint, settings, seed, params, about)
    start = params, _optimiser(settings).init(params), jnp.zeros((), jnp.int32)
    (done,), carry = kept.load((0,), start)
    seen, steps, saved = [np.zeros((0, 2))], islice(steps, done, None), time.monotonic()
    while some := list(islice(steps, TOGETHER)):
        batches = jax.tree.map(lambda *each: np.stack(each), *some)
        carry, parts = _train(
            carry, rest, batches, graph=graph, loss=loss, settings=settings, seed=seed
        )
        seen.append(np.asarray(parts))
        done += len(some)
        if time.monotonic() - saved > SECONDS:
            kept.save((done,), carry)
            saved = time.monotonic()
    kept.save((done,), carry)
    return nnx.merge(graph, carry[0], rest), np.concatenate(seen)


def _optimiser(settings: Pretraining) -> optax.GradientTransformation:
    return optax.adamw(settings.learning_rate, b2=BETA2, weight_decay=DECAY)


@partial(jax.jit, static_argnames=("graph", "loss", "settings", "seed"))
def _train(
    carry, rest, batches: Batch, *, graph, loss: ClickLoss, settings: Pretraining, seed: int
):
    """The state after some steps, and the losses of each."""

    def step(carry, batch: Batch):
        params, state, number = carry
        key = jax.random.fold_in(jax.random.key(seed), number)

        def total(params):
            model = nnx.merge(graph, params, rest)
            parts = click_and_token_loss(model, batch, loss, settings, key)
            return sum(parts), jnp.stack(parts)

        gradient, parts = jax.grad(total, has_aux=True)(params)
        updates, state = _optimiser(settings).update(gradient, state, params)
        return (optax.apply_updates(params, updates), state, number + 1), parts

    return jax.lax.scan(step, carry, batches)


def vectors_of(
    encoder: MonoBert, sequences: Sequences, *, batch: int = 256, dropout: int | None = None
) -> Iterator[np.ndarray]:
    """The vector of each document's first token, some documents at a time: [batch, width] float32.

    A seed turns dropout on, as in the published vectors of one of the real sets, which were
    computed by a network in training mode.
    """
    graph, state = nnx.split(encoder)

    root = None if dropout is None else jax.random.key(dropout)
    for start in range(0, len(sequences.tokens), batch):
        tokens, segments = (
            each[start : start + batch] for each in (sequences.tokens, sequences.segments)
        )
        missing = [(0, batch - len(tokens)), (0, 0)]
        key = None if root is None else jax.random.fold_in(root, start)
        padded = np.pad(tokens, missing), np.pad(segments, missing)
        vectors = _first(state, *padded, key, graph=graph)
        yield np.asarray(vectors)[: len(tokens)]


@partial(jax.jit, static_argnames="graph")
def _first(state, tokens, segments, key, *, graph):
    return nnx.merge(graph, state)(tokens, segments, key, asked=1)[:, 0]

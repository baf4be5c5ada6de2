"""What a cross-encoder reads: a query and a document as one sequence of tokens, and its masks.

A sequence is [CLS] query [SEP] title [SEP] abstract [SEP], cut at a length. Segment 0 is the query
with its [CLS] and [SEP]; all else, padding included, is segment 1 (Hager 2026, Section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

PAD, SEP, CLS, MASK = 0, 1, 2, 3
OFFSET = 10
"""Tokens of texts count from here on. Numbers below are kept for special ones."""
ABSENT = -1
"""Stands behind the end of a text, as in `twotowers.standins.lexical`."""


@dataclass(frozen=True)
class Sequences:
    """Some sequences.

    Attributes:
        tokens: [documents, length] int32.
        segments: [documents, length] int32: 0 or 1, and 2 for marked tokens.
        text: [documents, length] bool: a token of title or abstract, which may be masked.
    """

    tokens: np.ndarray
    segments: np.ndarray
    text: np.ndarray


def sequences(
    query: np.ndarray, title: np.ndarray, abstract: np.ndarray, *, length: int
) -> Sequences:
    """Texts as sequences.

    Args:
        query, title, abstract: [documents, tokens] token ids from 0, -1 behind the end of a text.
        length: tokens of a sequence. What is longer is cut, its last [SEP], too.

    Example:
        >>> found = sequences(*np.array([[[5, -1]], [[7, 8]], [[9, -1]]]), length=9)
        >>> found.tokens.tolist(), found.segments.tolist()
        ([[2, 15, 1, 17, 18, 1, 19, 1, 0]], [[0, 0, 0, 1, 1, 1, 1, 1, 1]])
    """

    def special(token: int) -> np.ndarray:
        return np.full((len(query), 1), token)

    parts = [
        (special(CLS), 0, False), (_shifted(query), 0, False), (special(SEP), 0, False),
        (_shifted(title), 1, True), (special(SEP), 1, False),
        (_shifted(abstract), 1, True), (special(SEP), 1, False),
    ]  # fmt: skip
    tokens = np.hstack([each for each, _, _ in parts])
    segments = np.hstack([np.full(each.shape, segment) for each, segment, _ in parts])
    text = np.hstack([np.full(each.shape, own) for each, _, own in parts])
    # The tokens that exist move to the left, in their order.
    whole = tokens.shape[1]
    order = np.argsort(tokens == PAD, axis=1, kind="stable")[:, :length]
    order = np.pad(order, [(0, 0), (0, max(length - order.shape[1], 0))], mode="edge")
    tokens, segments, text = (
        np.take_along_axis(each, order, axis=1) for each in (tokens, segments, text)
    )
    beyond = (tokens == PAD) | (np.arange(length) >= whole)
    return Sequences(
        np.where(beyond, PAD, tokens).astype(np.int32),
        np.where(beyond, 1, segments).astype(np.int32),
        text & ~beyond,
    )


def marked(found: Sequences) -> Sequences:
    """The sequences with segment 2 for tokens of title and abstract that the query has, too.

    A network that has read months of text knows when two words are the same. A small one needs the
    mark (MarkedBERT; Boualili et al. 2020).

    Example:
        >>> texts = sequences(*np.array([[[5, -1]], [[7, 5]], [[9, -1]]]), length=9)
        >>> marked(texts).segments.tolist()
        [[0, 0, 0, 1, 2, 1, 1, 1, 1]]
    """
    asked = (found.segments == 0) & (found.tokens >= OFFSET)
    query = np.where(asked, found.tokens, PAD)[:, : (found.segments == 0).sum(1).max(initial=0)]
    same = np.zeros_like(found.text)
    for place in range(query.shape[1]):
        same |= found.tokens == query[:, place, None]
    return replace(found, segments=np.where(same & found.text, 2, found.segments))


def _shifted(tokens: np.ndarray) -> np.ndarray:
    return np.where(tokens == ABSENT, PAD, tokens + OFFSET)


def masked(
    tokens: jax.Array, text: jax.Array, *, rate: float, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Replace a share of the tokens of texts by [MASK]. Those of queries are never replaced.

    Args:
        tokens: [documents, length].
        text: [documents, length] bool, True where a token may be replaced.
        rate: the chance of each.
        key: source of randomness.

    Returns:
        [documents, length] tokens; [documents, length] bool, which of them are masked.

    Example:
        >>> tokens, text = jnp.array([[2, 15, 1, 17, 18, 1]]), jnp.array([[0, 0, 0, 1, 1, 0]]) > 0
        >>> hidden, chosen = masked(tokens, text, rate=1.0, key=jax.random.key(0))
        >>> hidden.tolist(), chosen.sum().item()
        ([[2, 15, 1, 3, 3, 1]], 2)
    """
    chosen = text & jax.random.bernoulli(key, rate, tokens.shape)
    return jnp.where(chosen, MASK, tokens), chosen

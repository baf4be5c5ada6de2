"""What a cross-encoder reads: a query and a document as one sequence of tokens, and its masks.

A sequence is [CLS] query [SEP] title [SEP] abstract [SEP], cut at a length. Segment 0 is the query
with its [CLS] and [SEP]; all else, padding included, is segment 1 (Hager 2026, Section 3.4).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

PAD, SEP, CLS, MASK = 0, 1, 2, 3
OFFSET = 10
"""Tokens of texts count from here on. Numbers below are kept for special ones."""
ABSENT = -1
"""Stands behind the end of a text, as in `twotowers.standins.lexical`."""


class Sequences(NamedTuple):
    """Some sequences.

    Attributes:
        tokens: [documents, length] int32.
        segments: [documents, length] int32: 0 or 1, and 2 for marked tokens.
        text: [documents, length] bool: a token of title or abstract, which may be masked.
    """

    tokens: np.ndarray
    segments: np.ndarray
    text: np.ndarray

    @classmethod
    def of(cls, tokens: np.ndarray, *, marks: bool = False) -> Sequences:
        """What an encoder reads, from `sequences` alone: segment 0 ends with the first [SEP]."""
        ends = tokens == SEP
        segments = (np.cumsum(ends, axis=1) - ends > 0).astype(np.int32)
        sequences = cls(tokens, segments, (segments == 1) & (tokens >= OFFSET))
        return marked(sequences) if marks else sequences


def sequences(
    query: np.ndarray, title: np.ndarray, abstract: np.ndarray, *, length: int
) -> np.ndarray:
    """[documents, length] int32 tokens of texts. What is longer is cut, its last [SEP], too.

    Texts are [documents, tokens] token ids from 0, -1 behind the end.
    """

    def special(token: int) -> np.ndarray:
        return np.full((len(query), 1), token)

    texts = [np.where(text == ABSENT, PAD, text + OFFSET) for text in (query, title, abstract)]
    behind = [each for text in texts for each in (text, special(SEP))]
    tokens = np.hstack([special(CLS), *behind])
    # The tokens that exist move to the left, in their order.
    order = np.argsort(tokens == PAD, axis=1, kind="stable")[:, :length]
    tokens = np.take_along_axis(tokens, order, axis=1)
    return np.pad(tokens, [(0, 0), (0, length - order.shape[1])]).astype(np.int32)


def marked(found: Sequences) -> Sequences:
    """The sequences with segment 2 for tokens of title and abstract that the query has, too.

    A network that has read months of text knows when two words are the same. A small one needs the
    mark (MarkedBERT; Boualili et al. 2020).
    """
    asked = (found.segments == 0) & (found.tokens >= OFFSET)
    query = np.where(asked, found.tokens, PAD)[:, : (found.segments == 0).sum(1).max(initial=0)]
    same = np.zeros_like(found.text)
    for place in range(query.shape[1]):
        same |= found.tokens == query[:, place, None]
    return found._replace(segments=np.where(same & found.text, 2, found.segments))


def masked(
    tokens: jax.Array, text: jax.Array, *, rate: float, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Replace a share of the tokens of texts by [MASK]. Those of queries are never replaced.

    `text` is True where a token may be; all are [documents, length]. Returns the tokens, and which
    of them are masked.
    """
    chosen = text & jax.random.bernoulli(key, rate, tokens.shape)
    return jnp.where(chosen, MASK, tokens), chosen

"""Lexical features of a query and a document: BM25, TF-IDF and query likelihood from token ids.

Texts are padded arrays of token ids, with `PAD` behind their end. A token that occurs twice in a
query counts twice, as in the published features of Baidu-ULTR.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from twotowers.logs.formats.baidu import LEXICAL

PAD = -1
"""Stands behind the end of a text. Token ids are 0 or more."""
FIELDS = ("document", "title", "abstract")
"""A document is its title and then its abstract."""
K1, B = 1.2, 0.75
SHORT, LONG, DIRICHLET = 0.1, 0.7, 128.0
"""Weights of the corpus in Jelinek-Mercer smoothing for short and long queries; Dirichlet's mu."""
ROWS = 8192
"""Pairs to compare at a time."""


@dataclass(frozen=True)
class Corpus:
    """What a collection of N `documents` says of its tokens, by field: [vocabulary] each.

    `frequency` is n, the number of documents whose field has the token; `occurrences` how often
    fields have it.
    """

    documents: int
    frequency: dict[str, np.ndarray]
    occurrences: dict[str, np.ndarray]

    @classmethod
    def of(cls, texts: Iterable[tuple[np.ndarray, np.ndarray]], vocabulary: int) -> Corpus:
        """Count a collection: titles and abstracts [documents, tokens] of some at a time."""
        number = 0
        frequency, occurrences = (
            {field: np.zeros(vocabulary, np.int64) for field in FIELDS} for _ in range(2)
        )
        for title, abstract in texts:
            number += len(title)
            for field, tokens in _fields(title, abstract).items():
                tokens = np.sort(tokens, axis=1)
                first = np.diff(tokens, axis=1, prepend=PAD) != 0
                frequency[field] += np.bincount(
                    tokens[first & (tokens != PAD)], minlength=vocabulary
                )
                occurrences[field] += np.bincount(tokens[tokens != PAD], minlength=vocabulary)
        return cls(number, frequency, occurrences)


def lexical_features(
    query: np.ndarray, title: np.ndarray, abstract: np.ndarray, corpus: Corpus
) -> np.ndarray:
    """The twelve features [pairs, 12] float32 of pairs, in the order of `LEXICAL`.

    Texts are [pairs, tokens] token ids, `PAD` behind the end. Pairs have their query's tokens
    repeated. Lengths are those of the document, the title and the abstract.
    """
    parts = [
        _features(query[rows], title[rows], abstract[rows], corpus)
        for rows in (slice(start, start + ROWS) for start in range(0, len(query), ROWS))
    ]
    return np.concatenate(parts) if parts else np.zeros((0, len(LEXICAL)), np.float32)


def bm25(
    query: np.ndarray, counts: np.ndarray, length: np.ndarray, corpus: Corpus, field: str
) -> np.ndarray:
    """BM25 (Robertson and Walker 1994): sum of idf tf (k1 + 1) / (tf + k1 (1 - b + b len / mean)).

    The sum is over the query's tokens [pairs, tokens], of which the field has tf `counts`, with idf
    = ln(1 + (N - n + .5) / (n + .5)), k1 = 1.2 and b = .75.
    """
    known = corpus.frequency[field][np.maximum(query, 0)]
    idf = np.log1p((corpus.documents - known + 0.5) / (known + 0.5))
    mean = corpus.occurrences[field].sum() / max(corpus.documents, 1)
    norm = 1 - B + B * length / max(mean, 1e-9)
    return (idf * counts * (K1 + 1) / (counts + K1 * norm[:, None])).sum(1)


def query_likelihood(
    query: np.ndarray,
    counts: np.ndarray,
    length: np.ndarray,
    corpus: Corpus,
    weight: np.ndarray | float,
) -> np.ndarray:
    """Log-probability of a query (Zhai and Lafferty 2004): sum of ln(a p_corpus + (1 - a) tf/len).

    Tokens that neither the document nor the collection has are skipped. The weight a, of the
    collection, is a number or [pairs]; the rest is as of `bm25`.
    """
    seen = corpus.occurrences["document"]
    weight = np.broadcast_to(weight, length.shape)[:, None]
    chance = weight * seen[np.maximum(query, 0)] / max(seen.sum(), 1)
    chance = chance + (1 - weight) * counts / np.maximum(length, 1)[:, None]
    return np.log(np.where((query != PAD) & (chance > 0), chance, 1)).sum(1)


def _fields(title: np.ndarray, abstract: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(FIELDS, (np.hstack([title, abstract]), title, abstract), strict=True))


def _features(query, title, abstract, corpus: Corpus) -> np.ndarray:
    counts, lengths = {}, {}
    for field, tokens in _fields(title, abstract).items():
        alike = (query[:, :, None] == tokens[:, None, :]) & (query != PAD)[:, :, None]
        counts[field] = alike.sum(2)
        lengths[field] = (tokens != PAD).sum(1)
    tf, length = counts["document"], lengths["document"]
    damped = np.log1p(tf)
    known = corpus.frequency["document"][np.maximum(query, 0)]
    rarity = np.log((1 + corpus.documents) / (1 + known)) * (tf > 0)
    weights = SHORT, LONG, DIRICHLET / (length + DIRICHLET)
    columns = [
        *(bm25(query, counts[field], lengths[field], corpus, field) for field in FIELDS),
        (damped * rarity).sum(1),
        damped.sum(1),
        rarity.sum(1),
        *(query_likelihood(query, tf, length, corpus, weight) for weight in weights),
        *(lengths[field] for field in FIELDS),
    ]
    return np.column_stack(columns).astype(np.float32)

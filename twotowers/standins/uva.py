"""The stand-in for Baidu-ULTR-UVA: pages of documents known by features, and annotated queries.

A query has CANDIDATES documents. A document has traits, of which features show some well and some
hardly; a rotation hides which column shows what, as in the embeddings of the real set. From traits
and noise come its relevance and its appeal, which agree little. What attracts follows from both,
what satisfies from relevance and noise. A production ranker sees what columns say of attraction,
and shows the first of its ranking: the log knows no other documents. Annotators label all
CANDIDATES of other queries, far beyond what is shown. Users are those of `standins.users`: some
read from top to bottom, others glance at positions. So no click model is the one that clicked.

docs/standins.md says what was calibrated. Columns are fewer than the real 768, since fits would
take too long.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import expit

from twotowers.files.rankings import Rankings, write_rankings
from twotowers.logs.described import write_documents
from twotowers.logs.sessions import page_batch, write_sessions
from twotowers.randomness import stream
from twotowers.splits import ANNOTATIONS, DOCUMENTS, LOG
from twotowers.standins.users import LENGTH, Candidates, PageLaw, clicks_of, mixed
from twotowers.standins.vectors import signal_of_traits

NAME, WHOLE = "baidu_ultr_uva", "baidu_ultr"
"""The set with features, and the whole log without, whose law is the same here."""
NAMES = (NAME, WHOLE)
CANDIDATES = 55
"""Documents of a query: 382,038 pairs of 6,985 annotated queries are 54.7 a query."""
LENGTHS = {5: 0.09, 6: 0.10, 7: 0.13, 8: 0.18, 9: 0.24, 10: 0.26}
"""Shares of pages by length: 8.16 documents on average, none below 5."""
LOADINGS = (0.97, 0.7, 0.4, 0.2)
"""How strongly the columns of a trait show it."""
TRAITS = 8
"""Relevance follows from the first four, appeal from the others."""
WIDTH = TRAITS * len(LOADINGS)
HASH = np.uint64(0x9E3779B97F4A7C15)
"""Multiplied by it modulo 2^64, numbers spread over the higher bits (Fibonacci hashing)."""
BLOCK = 1024
"""Queries to draw at a time."""


@dataclass(frozen=True)
class Law(PageLaw):
    """The distribution of documents, pages and clicks.

    Attributes:
        likeness: share of a trait's variance that is the query's own.
        predictable, appealing: shares of the variance of relevance, and of appeal, that columns
            carry.
        ranked: share of the variance of the production ranker's scores that columns explain.
        thresholds: relevance from which a document has label 1, 2, 3, 4.
    """

    likeness: float
    predictable: float
    appealing: float
    ranked: float
    thresholds: tuple[float, float, float, float]


LAW = Law.read(Path(__file__).with_suffix(".yaml"))

SIGNAL_MEAN, SIGNAL_SD = -0.401, 1.328
"""Of `signal_of_traits`, of normal traits."""


@dataclass(frozen=True, kw_only=True)
class Drawn(Candidates):
    """Of them `signal`, what columns carry of relevance, has variance 1, too."""

    signal: np.ndarray


def candidates(rng: np.random.Generator, queries: int, law: Law = LAW) -> Drawn:
    """Draw queries with their documents."""
    shape = queries, CANDIDATES

    def normal(*more: int) -> np.ndarray:
        return rng.standard_normal((*shape, *more), np.float32)

    own = rng.standard_normal((queries, 1, TRAITS), np.float32)
    alike = np.broadcast_to(own, (*shape, TRAITS))
    traits = mixed([(law.likeness, alike)], normal(TRAITS))
    half = TRAITS // 2
    signal, charm = (
        ((signal_of_traits(part.reshape(-1, half)) - SIGNAL_MEAN) / SIGNAL_SD).reshape(shape)
        for part in (traits[..., :half], traits[..., half:])
    )
    relevance = mixed([(law.predictable, signal)], normal())
    appeal = mixed([(law.appealing, charm)], normal())
    both = law.agreement**2
    return Drawn(
        traits=traits,
        signal=signal,
        relevance=relevance + law.among * rng.standard_normal((queries, 1), np.float32),
        attraction=mixed([(both, relevance)], appeal),
        satisfaction=mixed([(both, relevance)], normal()),
        score=mixed([(law.ranked, mixed([(both, signal)], charm))], normal()),
    )


@cache
def rotation() -> np.ndarray:
    """[WIDTH, WIDTH] orthogonal and the same for all seeds: what the columns are."""
    drawn = stream(f"{NAME} columns").standard_normal((WIDTH, WIDTH))
    return np.linalg.qr(drawn)[0].astype(np.float32)


def features_of(rng: np.random.Generator, traits: np.ndarray) -> np.ndarray:
    """[rows, TRAITS] -> [rows, WIDTH] float32."""
    loading = np.repeat(np.float32(LOADINGS), TRAITS)
    noise = rng.standard_normal((len(traits), WIDTH), np.float32)
    shown = loading * np.tile(traits, len(LOADINGS)) + np.sqrt(1 - loading**2) * noise
    return shown @ rotation()


def write(path: str | Path, part: str, *, name: str, size: int, seed: int) -> None:
    """Write a part: 'annotations' of `size` queries, or 'documents' or 'pages' of as many sessions.

    Annotated queries have all of their documents, labelled 0 to 4, and are none of the log's.
    """
    if part == ANNOTATIONS:
        rng = stream(f"{NAME} annotations", seed)
        drawn = candidates(rng, size)
        labels = labels_of(drawn.relevance).ravel()
        features = features_of(rng, drawn.traits.reshape(-1, TRAITS))
        lengths = np.repeat(CANDIDATES, size)
        write_rankings(Rankings.of_lists(lengths, labels, features), path)
    elif part == DOCUMENTS:
        write_documents(path, _documents(size, seed))
    else:
        write_sessions(path, _pages(size, seed, hashed=name == WHOLE))


def labels_of(relevance: np.ndarray, law: Law = LAW) -> np.ndarray:
    """Labels 0 to 4, float32."""
    return np.searchsorted(law.thresholds, relevance).astype(np.float32)


def _pages(sessions: int, seed: int, hashed: bool) -> Iterator[pa.RecordBatch]:
    """Pages, query by query. No two queries share a document.

    `hashed`: as Baidu-ULTR has them, without queries, and ids of 31 bits that tell nothing.
    """
    for block in draw(sessions, seed=seed):
        query, documents = block.query, block.documents
        if hashed:
            query = np.zeros(len(query), np.int64)
            documents = ((documents.astype(np.uint64) * HASH) >> np.uint64(33)).astype(np.int64)
        yield page_batch(query, documents, block.clicks, LOG, block.where)


def _documents(sessions: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Number and features of each document that pages show: [documents], [documents, WIDTH]."""
    for number, block in enumerate(draw(sessions, seed=seed)):
        shown = np.unique(block.documents[block.where])
        traits = block.traits.reshape(-1, TRAITS)[shown - block.query[0] * CANDIDATES]
        yield shown, features_of(stream(f"{NAME} features", seed, number), traits)


@dataclass(frozen=True)
class Block:
    """Pages of successive queries.

    Attributes:
        query: [pages], from the lowest on.
        documents: [pages, LENGTH] query times CANDIDATES plus the document's number there.
        clicks, where: [pages, LENGTH] bool; `where` is False behind the end of a page.
        traits: [queries, CANDIDATES, TRAITS].
    """

    query: np.ndarray
    documents: np.ndarray
    clicks: np.ndarray
    where: np.ndarray
    traits: np.ndarray


def draw(sessions: int, *, seed: int, law: Law = LAW) -> Iterator[Block]:
    """Pages, some queries at a time."""
    rng = stream(f"{NAME} stand-in", seed)
    most = np.log1p(law.queries / law.head)
    asked = (law.head * sessions * np.expm1(rng.random(sessions) * most)).astype(np.int64)
    views = np.unique(asked, return_counts=True)[1]
    longest, shares = np.array(list(LENGTHS)), np.array(list(LENGTHS.values()))
    for start in range(0, len(views), BLOCK):
        own = views[start : start + BLOCK]
        drawn = candidates(rng, len(own), law)
        lengths = rng.choice(longest, len(own), p=shares)
        page = np.repeat(np.arange(len(own)), own)
        noise = rng.standard_normal((len(page), CANDIDATES), np.float32)
        slots = np.argsort(-(drawn.score[page] + law.jitter * noise), axis=1)[:, :LENGTH]
        at = page[:, None], slots
        clicks = clicks_of(
            rng,
            expit(law.level + law.spread * drawn.attraction[at]),
            expit(law.satisfied + law.spread * drawn.satisfaction[at]),
            law.users,
        )
        where = np.arange(LENGTH) < lengths[page, None]
        query = start + page
        documents = query[:, None] * CANDIDATES + slots
        yield Block(query, documents, clicks & where, where, drawn.traits)

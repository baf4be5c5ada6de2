"""The stand-in for WSCD-2012: pages of ten, a long tail of queries, and several kinds of users.

A page view draws a query by the law of Zipf and Mandelbrot, and a version of that query's ranking.
So a few pairs are shown very often, and most of them once. A share of users reads from top to
bottom. They stop when satisfied or out of patience, and read on after a click less often. The
others look at positions independently of what they clicked. So none of the ten click models is
the one that clicked.

What was calibrated (`scripts/standins/wscd.py`): LAW, to the published perplexities of the four
models without memory, GCTR, RCTR, DCTR and PBM (thesis, Figure 5.1, first fold); and the number of
queries and versions, to WSCD's 346.7 million pairs in 146.3 million sessions. What the other six
models make of the log was not looked at meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import expit

from twotowers import LOG
from twotowers.logs.sessions import page_batch

LENGTH = 10
CHUNK = 100_000
"""Pages to draw clicks of at a time."""


@dataclass(frozen=True)
class Users:
    """Who clicks: readers, who read from top to bottom, and others, who glance at positions.

    Attributes:
        patience, unsatisfied: chance to read on after no click, and after one that did not satisfy.
        readers: share of sessions that read from top to bottom.
        eta: the others examine position k with chance k^-eta.
    """

    patience: float
    unsatisfied: float
    readers: float
    eta: float


@dataclass(frozen=True)
class Law(Users):
    """The distribution of pages.

    Attributes:
        queries: number of queries per session.
        head: about this many queries are equally common. Beyond them, the share of a query falls
            with its rank, as in Zipf's law.
        documents: of a query, of which a page shows LENGTH.
        noise: standard deviation of what a version of a ranking adds to the documents' usual
            ranks; a version that comes second or later is as rare as a power of its number.
        versions: the larger, the more versions.
        level, slope, spread, among: log-odds of attraction are level - slope ln(1 + usual rank)
            + spread z + among z', with normal z of the pair and z' of the query.
        satisfied: log-odds of satisfaction, beside 1 per unit of `spread`.
    """

    queries: float
    head: float
    documents: int
    noise: float
    versions: float
    level: float
    slope: float
    spread: float
    among: float
    satisfied: float


LAW = Law(
    queries=0.78,
    head=2.5,
    documents=12,
    noise=1.2,
    versions=0.2,
    level=0.0545,
    slope=0.7143,
    spread=4.419,
    among=2.0,
    satisfied=0.0,
    patience=0.977,
    unsatisfied=0.7,
    readers=0.7,
    eta=0.8,
)


def wscd_pages(rng: np.random.Generator, sessions: int) -> Iterator[pa.RecordBatch]:
    """Pages in random order, for `twotowers.logs.sessions.write_sessions`.

    Args:
        rng: source of randomness.
        sessions: number of pages.
    """
    for query, documents, clicks in draw(rng, sessions):
        yield page_batch(query, documents, clicks, LOG)


def draw(
    rng: np.random.Generator, sessions: int, law: Law = LAW
) -> Iterator[tuple[np.ndarray, ...]]:
    """Query [pages], documents and clicks [pages, LENGTH] of some pages at a time."""
    most = np.log1p(law.queries * sessions / law.head)
    asked = (law.head * np.expm1(rng.random(sessions) * most)).astype(np.int64)
    _, query = np.unique(asked, return_inverse=True)
    version = np.minimum(law.versions * rng.pareto(1.0, sessions), 10_000).astype(np.int64)
    shape = int(query.max()) + 1, law.documents
    z = rng.standard_normal(shape, np.float32)
    usual = np.log1p(np.arange(law.documents, dtype=np.float32))
    attraction = law.level - law.slope * usual + law.spread * z
    attraction += law.among * rng.standard_normal((shape[0], 1), np.float32)
    attracts, satisfies = expit(attraction), expit(law.satisfied + law.spread * z)
    distinct, ranking = np.unique(query * 10_001 + version, return_inverse=True)
    ranks = np.arange(law.documents) + law.noise * rng.standard_normal(
        (len(distinct), law.documents), np.float32
    )
    # The first version is the usual order.
    ranks[distinct % 10_001 == 0] = np.arange(law.documents)
    slots = np.argsort(ranks, axis=1)[:, :LENGTH]
    for start in range(0, sessions, CHUNK):
        pages = slice(start, start + CHUNK)
        own, slot = query[pages, None], slots[ranking[pages]]
        clicks = clicks_of(rng, attracts[own, slot], satisfies[own, slot], law)
        yield query[pages], own * law.documents + slot, clicks


def clicks_of(
    rng: np.random.Generator, attracts: np.ndarray, satisfies: np.ndarray, users: Users
) -> np.ndarray:
    """[pages, K] bool: draw clicks, given P(attractive) and P(satisfied | clicked) of documents."""
    pages, length = attracts.shape
    attracted = rng.random(attracts.shape) < attracts
    satisfied = rng.random(attracts.shape) < satisfies
    patient = rng.random(attracts.shape)
    reader = rng.random(pages) < users.readers
    place = np.arange(1.0, length + 1)
    glanced = rng.random(attracts.shape) < place**-users.eta
    reads, clicks = reader.copy(), np.zeros(attracts.shape, bool)
    for k in range(length):
        clicks[:, k] = attracted[:, k] & np.where(reader, reads, glanced[:, k])
        goes = np.where(
            clicks[:, k],
            ~satisfied[:, k] & (patient[:, k] < users.unsatisfied),
            patient[:, k] < users.patience,
        )
        reads &= goes
    return clicks

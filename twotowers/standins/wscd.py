"""The stand-in for WSCD-2012: pages of ten, a long tail of queries, and several kinds of users.

A page view draws a query by the law of Zipf and Mandelbrot, and a version of that query's ranking.
So a few pairs are shown very often, and most of them once. Users are those of `standins.users`:
some read from top to bottom, others count positions from their last click. So none of the ten click
models is the one that clicked.

One document takes most clicks of a common query, as if the query named a page. Users of a rare
query click on any document, and seldom.

docs/standins.md says what was calibrated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import expit

from twotowers.errors import check_choice
from twotowers.files.yamls import read_yaml
from twotowers.logs.sessions import page_batch, write_sessions
from twotowers.randomness import stream
from twotowers.splits import LOG, PAGES
from twotowers.standins.users import LENGTH, Users, clicks_of

NAME = "wscd"
NAMES = (NAME,)
CHUNK = 100_000
"""Pages to draw clicks of at a time."""


@dataclass(frozen=True, kw_only=True)
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
        level, slope, spread, among: log-odds of attraction in the most common query are
            level - slope ln(1 + usual rank) + spread z + among z', with normal z of the pair and z'
            of the query.
        tail, bend: log-odds of attraction in the rarest query are `tail` for all documents. Those
            in between are the mean of the two, in which the rarest query has weight x^bend. From
            the most common query to the rarest, x grows from 0 to 1 with the logarithm of the rank.
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
    tail: float
    bend: float
    satisfied: float


LAW = Law(**read_yaml(Path(__file__).with_suffix(".yaml")))


def generate_pages(*, sessions: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Pages in random order, for `twotowers.logs.sessions.write_sessions`.

    Args:
        sessions: their number.
        seed: from 0.
    """
    for query, documents, clicks in draw(stream(f"{NAME} stand-in", seed), sessions):
        yield page_batch(query, documents, clicks, LOG)


def write(path: str | Path, part: str, *, name: str, size: int, seed: int) -> None:
    """Write the pages of `size` sessions. There is one log of this law."""
    check_choice(part, [PAGES], field="part")
    write_sessions(path, generate_pages(sessions=size, seed=seed))


def draw(
    rng: np.random.Generator, sessions: int, law: Law = LAW
) -> Iterator[tuple[np.ndarray, ...]]:
    """Query [pages], documents and clicks [pages, LENGTH] of some pages at a time."""
    most = np.log1p(law.queries * sessions / law.head)
    asked = (law.head * np.expm1(rng.random(sessions) * most)).astype(np.int64)
    rank, query = np.unique(asked, return_inverse=True)
    version = np.minimum(law.versions * rng.pareto(1.0, sessions), 10_000).astype(np.int64)
    shape = int(query.max()) + 1, law.documents
    z = rng.standard_normal(shape, np.float32)
    usual = np.log1p(np.arange(law.documents, dtype=np.float32))
    attraction = law.level - law.slope * usual + law.spread * z
    attraction += law.among * rng.standard_normal((shape[0], 1), np.float32)
    rare = ((np.log1p(rank / law.head) / most) ** law.bend)[:, None].astype(np.float32)
    attraction += rare * (law.tail - attraction)
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

"""Generated stand-ins for click logs, with regimes that were measured on the real ones.

A page view draws a query, then a version of its ranking. Both have heavy tails: few rankings
are shown often, and most are shown once or twice. A version reorders the query's documents by
noise. Clicks follow a position-based model. No component of the identifiability graph is
planted. The graph is what these draws connect.

In the stand-in for TianGong-ST a document keeps its kind of result (v1). The height at which it
is drawn (v2) sometimes changes between versions, and is missing on a share of whole pages. The
few public pages of TianGong-ST, in the repository of the click model CACM, show the same. So no
document connects two kinds, many documents connect two heights, and rare kinds and heights stay
unconnected. This gives the order of the counts in Table 5 of Chen et al. 2024.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import check_choice
from twotowers.files.artefacts import atomic
from twotowers.logs.counted import count_cells
from twotowers.randomness import stream
from twotowers.splits import LOG
from twotowers.standins.users import LENGTH

# Sessions of the real data sets. A session of Yandex is a result page.
SESSIONS = {"tiangong": 147_155, "yandex": 35_064}
NAMES = tuple(SESSIONS)


@dataclass(frozen=True)
class Tail:
    """A Pareto (Lomax) law of numbers from 0. About `scale` of them are equally common. Beyond
    that their share falls with the power -(shape + 1)."""

    scale: float
    shape: float

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """[size] int64."""
        return np.minimum(self.scale * rng.pareto(self.shape, size), 2**40).astype(np.int64)


@dataclass(frozen=True)
class Reordering:
    """How the rankings of a query vary.

    Attributes:
        versions: the law of the version that a page view shows.
        documents: documents of a query. A version shows LENGTH of them.
        noise: standard deviation of the noise that a version adds to the usual ranks.
    """

    versions: Tail
    documents: int
    noise: float


# TianGong-ST: the owners give the page views per session (README of CACM, Chen et al., WSDM
# 2020). The tail of queries gives their 40,596 queries. The other laws were calibrated so that
# the log has the bias factors and components of Table 5.
PAGES_PER_SESSION = 2.42
TIANGONG_QUERIES = Tail(1590, 1.0)
TIANGONG_RANKINGS = Reordering(Tail(4.5, 1.2), 14, 3.0)
ORDINARY = 0.45
KINDS = Tail(8.0, 1.55)
HEIGHTS = Tail(1.9, 2.15)
REDRAWN = 0.3
UNMEASURED = 0.15
# P(examined) at positions 1 to 10, from eye tracking (Joachims et al. 2005). ULTRA's click model
# uses it, and so do the simulations of Chen et al. 2024 (Appendix C.2).
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])

# The Yandex sample: the r-th most frequent query has a share of r^-1.9 of the pages. CTR by rank.
YANDEX_QUERIES = 20
YANDEX_EXPONENT = 1.9
YANDEX_RANKINGS = Reordering(Tail(4.5, 1.6), 50, 6.0)
YANDEX_CTR = np.array([0.257, 0.249, 0.170, 0.154, 0.106, 0.073, 0.069, 0.047, 0.050, 0.045])

# In both, relevance has a beta distribution with mean 1/3.
RELEVANCE = (1.0, 2.0)


def generate_log(name: str, *, sessions: int | None = None, seed: int) -> pa.Table:
    """Draw a stand-in of a click log, in the layout of `twotowers.logs.counted.count_cells`.

    'tiangong' has sessions of 2.42 result pages on average, and bias factors position, v1 and v2;
    of 'yandex' a session is a result page, and position the bias factor. Pages have 10 documents.
    Sessions are as many as of the real log if None; fewer give fewer bias factors, which are less
    well connected. Queries are numbered from 0, the most frequent first. No two queries share a
    document. The metadata has sessions and pages.
    """
    draw = _tiangong if name == "tiangong" else _yandex
    return draw(stream(f"{name} stand-in", seed), sessions or SESSIONS[name])


def write(path: str | Path, part: str, *, name: str, size: int, seed: int) -> None:
    """Write the log as cells: `size` sessions."""
    check_choice(part, [LOG], field="part")
    with atomic(path) as temporary:
        pq.write_table(generate_log(name, sessions=size, seed=seed), temporary)


def _show(
    rng: np.random.Generator, query: np.ndarray, law: Reordering
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different rankings shown, given the query of each page view: [pages] from 0.

    Query [rankings], documents [rankings, LENGTH] and number of views [rankings].
    """
    version = law.versions.draw(rng, len(query))
    order = np.lexsort((version, query))
    query, version = query[order], version[order]
    first = np.flatnonzero((np.diff(query, prepend=-1) != 0) | (np.diff(version, prepend=-1) != 0))
    noise = rng.standard_normal((len(first), law.documents), dtype=np.float32)
    ranks = np.arange(law.documents) + np.float32(law.noise) * noise
    views = np.diff(first, append=len(query))
    return query[first], np.argsort(ranks, axis=1)[:, :LENGTH], views


def _tiangong(rng: np.random.Generator, sessions: int) -> pa.Table:
    pages = round(PAGES_PER_SESSION * sessions)
    _, query = np.unique(TIANGONG_QUERIES.draw(rng, pages), return_inverse=True)
    law = TIANGONG_RANKINGS
    documents = (query.max() + 1, law.documents)
    query, slot, views = _show(rng, query, law)
    at = (query[:, None], slot)

    kind = 1 + KINDS.draw(rng, documents)
    kind[rng.random(documents) < ORDINARY] = 0
    usual = HEIGHTS.draw(rng, documents)[at]
    other = HEIGHTS.draw(rng, usual.shape)
    height = 1 + np.where(rng.random(usual.shape) < REDRAWN, other, usual)
    height[rng.random(len(height)) < UNMEASURED] = 0

    # The names look like the real ones, but mean nothing.
    numbers = {"v1": (kind[at], 30_000_001 + 100 * kind[at]), "v2": (height, 45 + height)}
    verticals = {
        name: pa.array(np.where(code == 0, -1, number).ravel()).cast(pa.string())
        for name, (code, number) in numbers.items()
    }
    probability = EXAMINATION * rng.beta(*RELEVANCE, documents)[at]
    clicks = rng.binomial(views[:, None], probability)
    seen = {"sessions": sessions, "pages": pages}
    return count_cells(_cells(query, slot, views, clicks, law) | verticals, seen)


def _yandex(rng: np.random.Generator, sessions: int) -> pa.Table:
    share = np.arange(1, YANDEX_QUERIES + 1) ** -YANDEX_EXPONENT
    query = rng.choice(YANDEX_QUERIES, sessions, p=share / share.sum())
    law = YANDEX_RANKINGS
    query, slot, views = _show(rng, query, law)
    relevance = np.sort(rng.beta(*RELEVANCE, (YANDEX_QUERIES, law.documents)))[:, ::-1]
    relevance = relevance[query[:, None], slot]
    # With this examination the expected CTR by rank is that of the sample, for any rankings.
    examination = YANDEX_CTR / np.average(relevance, axis=0, weights=views)
    clicks = rng.binomial(views[:, None], np.minimum(examination * relevance, 1))
    seen = {"sessions": sessions, "pages": sessions}
    return count_cells(_cells(query, slot, views, clicks, law), seen)


def _cells(
    query: np.ndarray, slot: np.ndarray, views: np.ndarray, clicks: np.ndarray, law: Reordering
) -> dict[str, np.ndarray]:
    """The columns of all places of the rankings, with clicks [rankings, LENGTH]."""
    return {
        "query": np.repeat(query, LENGTH),
        "document": (query[:, None] * law.documents + slot).ravel(),
        "position": np.tile(np.arange(1, LENGTH + 1, dtype=np.int32), len(query)),
        "impressions": np.repeat(views, LENGTH),
        "clicks": clicks.ravel(),
    }

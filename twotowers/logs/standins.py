"""Generated stand-ins of click logs, with the regimes that were measured of the real ones.

A page view draws a query, then a version of that query's ranking; both have heavy tails, so
a few rankings are shown often and most of them once or twice. A version reorders the
query's documents by noise. Clicks follow a position-based model. No component of the
identifiability graph is planted: the graph is whatever these draws leave connected.

In the stand-in of TianGong-ST a document keeps its kind of result (v1), while the height at
which it is drawn (v2) sometimes changes from version to version, and is missing on a share
of whole pages. The few pages of TianGong-ST that are public, in the repository of the click
model CACM, show the same. So no document connects two kinds, many connect two heights, and
rare kinds and heights are left alone: that orders the counts as in Table 5 of Chen et al.
2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError, check_range, nearest
from twotowers.logs.counting import Names, count_cells
from twotowers.randomness import stream

# Sessions of the real data sets; one of Yandex's is a result page.
SESSIONS = {"tiangong": 147_155, "yandex": 35_064}
MOST_SESSIONS = 1_000_000
LENGTH = 10


@dataclass(frozen=True)
class Tail:
    """A Pareto (Lomax) law of numbers from 0: about `scale` of them are equally common, and
    beyond that their share falls with the power -(shape + 1)."""

    scale: float
    shape: float

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """[size] int64."""
        return np.minimum(self.scale * rng.pareto(self.shape, size), 2**40).astype(np.int64)


@dataclass(frozen=True)
class Reordering:
    """How the rankings of a query vary.

    Attributes:
        versions: which version of the ranking a page view shows.
        documents: documents of a query, of which a version shows LENGTH.
        noise: standard deviation of what a version adds to the documents' usual ranks.
    """

    versions: Tail
    documents: int
    noise: float


# TianGong-ST: page views per session are the owners' own figure (README of CACM, Chen et al.,
# WSDM 2020). The tail of queries gives their 40,596 queries; the others were adjusted until
# the log had the bias factors and components of Table 5.
PAGES_PER_SESSION = 2.42
TIANGONG_QUERIES = Tail(1590, 1.0)
TIANGONG_RANKINGS = Reordering(Tail(4.5, 1.2), 14, 3.0)
ORDINARY = 0.45
KINDS = Tail(8.0, 1.55)
HEIGHTS = Tail(1.9, 2.15)
REDRAWN = 0.3
UNMEASURED = 0.15
# P(examined) at positions 1 to 10, from eye tracking (Joachims et al. 2005), as in ULTRA's
# click model, which Chen et al. 2024 use in their simulations (Appendix C.2).
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])

# The Yandex sample: queries by pages have shares r^-1.9 of their rank r; its CTR by rank.
YANDEX_QUERIES = 20
YANDEX_EXPONENT = 1.9
YANDEX_RANKINGS = Reordering(Tail(4.5, 1.6), 50, 6.0)
YANDEX_CTR = np.array([0.257, 0.249, 0.170, 0.154, 0.106, 0.073, 0.069, 0.047, 0.050, 0.045])

# Relevance is drawn from a beta distribution of mean 1/3 in both.
RELEVANCE = (1.0, 2.0)


def generate_log(name: str, *, sessions: int | None = None, seed: int) -> pa.Table:
    """Draw a stand-in of a click log.

    Args:
        name: 'tiangong' (sessions of 2.42 result pages on average, bias factors position,
            v1 and v2) or 'yandex' (a session is a result page; bias factor position).
        sessions: how many, 1 to 1,000,000; None takes as many as the real log has. With
            fewer of them there are fewer bias factors, less well connected.
        seed: from 0.

    Returns:
        The log, in the layout of `twotowers.logs.counting.count_cells`; pages of 10.
        Queries count from 0 in order of popularity, documents are numbers that no two
        queries share. Its metadata has sessions and pages.

    Raises:
        InputError: an unknown name, or a number out of range or not whole.
    """
    if name not in SESSIONS:
        expected = nearest(name, SESSIONS)
        raise InputError(f"{name!r} has no stand-in", field="name", expected=expected)
    if sessions is None:
        sessions = SESSIONS[name]
    check_range(sessions, field="sessions", low=1, high=MOST_SESSIONS, whole=True)
    check_range(seed, field="seed", low=0, high=2**63 - 1, whole=True)
    rng = stream(f"{name} stand-in", seed)
    return (_tiangong if name == "tiangong" else _yandex)(rng, sessions)


@dataclass(frozen=True)
class _Shown:
    """The different rankings that were shown.

    Attributes:
        query: [rankings] the query, from 0.
        slot: [rankings, LENGTH] which of the query's documents, from 0, stand at positions 1...
        views: [rankings] how often the ranking was shown.
    """

    query: np.ndarray
    slot: np.ndarray
    views: np.ndarray


def _show(rng: np.random.Generator, query: np.ndarray, law: Reordering) -> _Shown:
    """Rank the documents of each page view, given its query: [pages] from 0."""
    version = law.versions.draw(rng, len(query))
    order = np.lexsort((version, query))
    query, version = query[order], version[order]
    first = np.flatnonzero((np.diff(query, prepend=-1) != 0) | (np.diff(version, prepend=-1) != 0))
    noise = rng.standard_normal((len(first), law.documents), dtype=np.float32)
    ranks = np.arange(law.documents) + np.float32(law.noise) * noise
    return _Shown(
        query=query[first],
        slot=np.argsort(ranks, axis=1)[:, :LENGTH],
        views=np.diff(first, append=len(query)),
    )


def _tiangong(rng: np.random.Generator, sessions: int) -> pa.Table:
    pages = round(PAGES_PER_SESSION * sessions)
    _, query = np.unique(TIANGONG_QUERIES.draw(rng, pages), return_inverse=True)
    law = TIANGONG_RANKINGS
    shown = _show(rng, query, law)
    documents = (query.max() + 1, law.documents)
    at = (shown.query[:, None], shown.slot)

    kind = 1 + KINDS.draw(rng, documents)
    kind[rng.random(documents) < ORDINARY] = 0
    usual = HEIGHTS.draw(rng, documents)[at]
    other = HEIGHTS.draw(rng, usual.shape)
    height = 1 + np.where(rng.random(usual.shape) < REDRAWN, other, usual)
    height[rng.random(len(height)) < UNMEASURED] = 0

    relevance = rng.beta(*RELEVANCE, documents)[at]
    return _log(
        rng,
        shown,
        law,
        EXAMINATION * relevance,
        # The names look like the real ones and mean nothing.
        vertical={
            "v1": _names(kind[at], lambda code: 30_000_001 + 100 * code),
            "v2": _names(height, lambda code: 45 + code),
        },
        seen={"sessions": sessions, "pages": pages},
    )


def _yandex(rng: np.random.Generator, sessions: int) -> pa.Table:
    share = np.arange(1, YANDEX_QUERIES + 1) ** -YANDEX_EXPONENT
    query = rng.choice(YANDEX_QUERIES, sessions, p=share / share.sum())
    law = YANDEX_RANKINGS
    shown = _show(rng, query, law)
    relevance = np.sort(rng.beta(*RELEVANCE, (YANDEX_QUERIES, law.documents)))[:, ::-1]
    relevance = relevance[shown.query[:, None], shown.slot]
    # Whatever the rankings drawn, this examination makes the expected CTR by rank the sample's.
    examination = YANDEX_CTR / np.average(relevance, axis=0, weights=shown.views)
    probability = np.minimum(examination * relevance, 1)
    return _log(rng, shown, law, probability, seen={"sessions": sessions, "pages": sessions})


def _names(code: np.ndarray, name) -> Names:
    """Names of numbers from 0, of which 0 is '-1', for none, and the others are `name`."""
    used, code = np.unique(code, return_inverse=True)
    return Names(code.ravel(), ["-1" if number == 0 else str(name(number)) for number in used])


def _log(
    rng: np.random.Generator,
    shown: _Shown,
    law: Reordering,
    probability: np.ndarray,
    *,
    vertical: dict[str, Names] | None = None,
    seen: dict[str, int],
) -> pa.Table:
    """Draw the clicks, given their probability: [rankings, LENGTH]."""
    shape = shown.slot.shape
    views = np.broadcast_to(shown.views[:, None], shape)
    return count_cells(
        np.repeat(shown.query, LENGTH),
        (shown.query[:, None] * law.documents + shown.slot).ravel(),
        np.broadcast_to(np.arange(1, LENGTH + 1), shape).ravel(),
        views.ravel(),
        rng.binomial(views, probability).ravel(),
        vertical=vertical,
        seen=seen,
    )

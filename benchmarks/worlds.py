"""Inputs of benchmarks: documents of a stand-in or noise of some shape, and clicks on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twotowers.datasets.preprocess import preprocess
from twotowers.logs.counts import Cells, Counts
from twotowers.logs.policies import ranking_order
from twotowers.logs.simulation import Sessions, Traffic
from twotowers.models.additive import Additive
from twotowers.models.relevance import relevance
from twotowers.randomness import stream
from twotowers.standins.rankings import generate

SEED = 2021
DOCUMENTS = 25
SPARE = 1.25
"""Stand-in queries to draw per wanted query. Some are too short or have no relevant document."""


@dataclass(frozen=True)
class World:
    """Lists of one length, with relevance.

    Attributes:
        features: [queries, documents, width] float32.
        relevance: [queries, documents] float32 in [0, 4].
    """

    features: np.ndarray
    relevance: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.full(len(self.features), self.features.shape[1])

    @property
    def order(self) -> np.ndarray:
        """[queries, positions] the ranking by relevance: the strongest logging policy."""
        every = np.ones(self.relevance.shape, bool)
        return ranking_order(self.relevance, every, tiebreak=np.zeros(every.shape))

    @property
    def chance(self) -> np.ndarray:
        """[queries, documents, positions] P(click) of the additive two-tower user."""
        positions = self.features.shape[1]
        return Additive().chance(self.relevance, positions)

    def counts(self, sessions: int, temperature: float) -> Counts:
        """A log, drawn as in the pipeline."""
        traffic = Traffic(
            self.lengths,
            sessions=sessions,
            temperatures=[temperature],
            length=self.features.shape[1],
            rng=stream("benchmark traffic", SEED),
        )
        shown = tabled(traffic.impressions(self.order, temperature), self.chance.shape)
        return Counts(shown, stream("benchmark clicks", SEED).binomial(shown, self.chance))

    def sessions(self, sessions: int, temperature: float, split: str) -> Sessions:
        """A log session by session."""
        return simulate_sessions(
            self.order,
            self.chance,
            self.lengths,
            sessions=sessions,
            temperature=temperature,
            rng=stream("benchmark sessions", SEED, split),
        )


def tabled(cells: Cells, shape: tuple[int, ...]) -> np.ndarray:
    """[queries, documents, positions] impressions of cells."""
    shown = np.zeros(shape, np.int64)
    shown[cells.query, cells.document, cells.position] = cells.impressions
    return shown


def standin(split: str, kind: str, queries: int) -> World:
    """Full lists of the stand-in for MSLR-WEB30K, prepared as in Hager et al. 2025.

    Args:
        split: "train" or "validation".
        kind: of relevance, "linear" or "deep" in the features.
        queries: their number.
    """
    drawn = generate("mslr30k", split, queries=int(SPARE * queries) + 20, seed=SEED)
    lists = preprocess(drawn, top=DOCUMENTS)
    full = np.flatnonzero(lists.lengths == DOCUMENTS)[:queries]
    if len(full) < queries:
        raise AssertionError(f"SPARE is too small for {queries} full lists")
    wanted = relevance(kind, lists.label, lists.features, seed=SEED, split=split)
    rows = lists.offsets[full][:, None] + np.arange(DOCUMENTS)
    return World(lists.features[rows], wanted[rows])


def shapes(queries: int, documents: int, width: int) -> World:
    """Noise of the given shape."""
    rng = stream("benchmark shapes", SEED)
    return World(
        rng.standard_normal((queries, documents, width), np.float32),
        rng.uniform(0, 4, (queries, documents)).astype(np.float32),
    )


def log(
    kind: str, split: str, *, queries: int, sessions: int, temperature: float
) -> tuple[np.ndarray, Sessions]:
    """Features [queries, documents, width] and sessions of one split of a log on a stand-in.

    The validation split has half as many sessions, on a third as many queries.
    """
    if split == "validation":
        queries, sessions = queries // 3, sessions // 2
    world = standin(split, kind, queries)
    return world.features, world.sessions(sessions, temperature, split)


def simulate_sessions(
    order: np.ndarray,
    probability: np.ndarray,
    lengths: np.ndarray,
    *,
    sessions: int,
    temperature: float,
    rng: np.random.Generator,
) -> Sessions:
    """The plain simulation, session by session (Hager et al. 2025, Section 7).

    Args:
        order: [queries, positions] the policy's ranking; see `Traffic.impressions`.
        probability: [queries, documents, positions] P(click) of each cell.
        lengths: [queries] documents of each query.
        sessions: number of sessions. Queries are drawn uniformly.
        temperature: probability in [0, 1] that a session's ranking is uniformly random.
        rng: source of randomness.
    """
    queries, length = order.shape
    query = np.sort(rng.integers(queries, size=sessions))
    where = np.arange(length) < np.asarray(lengths)[query, None]
    documents = order[query].copy()
    for row in np.flatnonzero(rng.random(sessions) < temperature):
        size = lengths[query[row]]
        documents[row, :size] = rng.permutation(size)
    chance = probability[query[:, None], documents, np.arange(length)]
    return Sessions(query, documents, (rng.random(chance.shape) < chance) & where, where)


def cells_of(log: Sessions, queries: int) -> Counts:
    """The same log as impressions and clicks per cell."""
    length = log.documents.shape[1]
    cell = (log.query[:, None] * length + log.documents) * length + np.arange(length)

    def count(selected):
        total = np.bincount(cell[selected], minlength=queries * length * length)
        return total.reshape(queries, length, length)

    return Counts(count(log.where), count(log.where & log.clicks))

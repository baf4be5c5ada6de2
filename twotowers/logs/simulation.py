"""Click logs, simulated as counts or as sessions.

Given query, document and position, clicks of the position-based and two-tower users are
independent. So the impressions and clicks of each (query, document, position) cell are
sufficient statistics. A binomial drawn per cell has exactly the distribution of the summed
clicks of a session-by-session simulation, and its cost does not grow with the number of
sessions. Only uniformly random rankings need a draw per session, since the sum of random
permutation matrices has no closed form. They are drawn once, and all policies and
temperatures share them. Each log keeps its own distribution, and the logs of one seed become
comparable (common random numbers). A policy with noise in each session draws its own rankings.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from twotowers.logs.counts import Cells
from twotowers.logs.policies import NoisyOrder

CHUNK = 10_000
"""Sessions whose random rankings are in memory at a time: 4 MB for 25 documents, to fit caches."""


class Traffic:
    """What policies share of a simulation: `visits` [queries], sessions of each, random rankings.

    Each session has a uniformly drawn query of `lengths` [queries] documents. `temperatures` are
    all that will be needed, in [0, 1].
    """

    def __init__(
        self,
        lengths: np.ndarray,
        *,
        sessions: int,
        temperatures: list[float],
        length: int,
        rng: np.random.Generator,
    ):
        queries = len(lengths)
        self.lengths, self.length = np.asarray(lengths), length
        self.visits = rng.multinomial(sessions, np.full(queries, 1 / queries))
        self.shuffled = {0.0: _tally([])}
        self.shuffled_visits = {0.0: np.zeros(queries, np.int64)}
        edges = sorted({0.0, *temperatures})
        # A session with u ~ U(0, 1) is shuffled at every temperature above u. Sessions are
        # split once by u. Each temperature adds the sessions since the one below.
        shares = np.diff([*edges, 1.0])
        groups = rng.multinomial(self.visits, shares / shares.sum())
        for number, (below, temperature) in enumerate(pairwise(edges)):
            cells = _shuffled_cells(groups[:, number], self.lengths, length, rng=rng)
            self.shuffled[temperature] = _added_up([self.shuffled[below], _tally(cells)])
            self.shuffled_visits[temperature] = self.shuffled_visits[below] + groups[:, number]

    def impressions(
        self,
        order: np.ndarray | NoisyOrder,
        temperature: float,
        rng: np.random.Generator | None = None,
    ) -> Cells:
        """Impressions under an epsilon-greedy policy: shuffled with probability `temperature`.

        `order` [queries, positions] is the list index of the policy's document at each position,
        where entries behind the end of a list are ignored, or a policy that draws it. The cells
        have clicks 0.
        """
        greedy = self.visits - self.shuffled_visits[float(temperature)]
        shown = self.shuffled[float(temperature)]
        if isinstance(order, NoisyOrder):
            ranked = _tally(_drawn_cells(order, greedy, self.lengths, rng))
        else:
            query, position = np.nonzero(np.arange(self.length) < self.lengths[:, None])
            visited = greedy[query] > 0
            query, position = query[visited], position[visited]
            cell = (query * self.length + order[query, position]) * self.length + position
            ranked = cell, greedy[query]
        cell, counts = _added_up([shown, ranked])
        pair, position = np.divmod(cell, self.length)
        query, document = np.divmod(pair, self.length)
        return Cells(query, document, position, counts, np.zeros_like(counts))


Tally = tuple[np.ndarray, np.ndarray]
"""Numbers of cells, (query x length + document) x length + position, and their impressions."""


def _tally(cells: Iterable[np.ndarray]) -> Tally:
    """Impressions of the cells, shown once each time that they come."""
    return _added_up([np.unique(cell, return_counts=True) for cell in cells])


def _added_up(tallies: Sequence[Tally]) -> Tally:
    """Impressions of all, by sorted cells."""
    nothing = np.zeros(0, np.int64)
    cell, counts = map(np.concatenate, zip((nothing, nothing), *tallies, strict=True))
    distinct, row = np.unique(cell, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, row, counts)
    return distinct, sums


def _shuffled_cells(sessions, lengths, length: int, *, rng) -> Iterator[np.ndarray]:
    """[sessions, positions] numbers of the shown cells, some sessions at a time."""
    for size in np.unique(lengths):
        log = np.repeat(np.flatnonzero(lengths == size), sessions[lengths == size])
        for start in range(0, len(log), CHUNK):
            query = log[start : start + CHUNK]
            documents = random_rankings(len(query), size, rng=rng).astype(np.int64)
            yield (query[:, None] * length + documents) * length + np.arange(size)


def _drawn_cells(order: NoisyOrder, sessions, lengths, rng) -> Iterator[np.ndarray]:
    """[shown] numbers of the cells that a policy shows, some sessions at a time."""
    length = order.shape[1]
    log = np.repeat(np.arange(len(sessions)), sessions)
    for start in range(0, len(log), CHUNK):
        query = log[start : start + CHUNK]
        cell = (query[:, None] * length + order.draw(query, rng)) * length + np.arange(length)
        yield cell[np.arange(length) < lengths[query, None]]


def random_rankings(sessions: int, size: int, *, rng: np.random.Generator) -> np.ndarray:
    """[sessions, size] small unsigned: independent uniformly random permutations of 0..size-1."""
    numbers = np.arange(size, dtype=np.min_scalar_type(size - 1))
    identity = np.broadcast_to(numbers, (sessions, size))
    return rng.permuted(identity, axis=1)


@dataclass(frozen=True)
class Sessions:
    """A log session by session, for losses and models of whole pages.

    Attributes:
        query: [sessions] index of the query.
        documents: [sessions, positions] list index of the document at each position.
        clicks: [sessions, positions] bool.
        where: [sessions, positions] bool, False behind the end of a list.
        page: [sessions] the number of each page in a real log, from 0; None if simulated.
    """

    query: np.ndarray
    documents: np.ndarray
    clicks: np.ndarray
    where: np.ndarray
    page: np.ndarray | None = None

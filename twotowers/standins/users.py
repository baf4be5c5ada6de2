"""Users of generated logs: some read from top to bottom, others glance at positions.

Readers stop when satisfied or out of patience, and read on after a click less often. The others
look at positions independently of what they clicked, or count them from their last click, as users
of UBM do. So none of the ten click models is the one that clicked.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from twotowers.files.yamls import read_yaml

LENGTH = 10
"""Documents of a page."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """Who clicks: readers, who read from top to bottom, and others, who glance at positions.

    Attributes:
        patience, unsatisfied: chance to read on after no click, and after one that did not satisfy.
        readers: share of sessions that read from top to bottom.
        eta: the others examine position k with chance k^-eta.
        remember: whether k is, to the others, the distance from the last click, if there is one.
    """

    patience: float
    unsatisfied: float
    readers: float
    eta: float
    remember: bool = False


@dataclass(frozen=True)
class PageLaw:
    """What laws of pages of a production ranker share.

    Attributes:
        queries: number of queries per session; most of them are never asked.
        head: about this share of it is equally common. Beyond it, the share of a query falls with
            its rank, as in Zipf's law.
        jitter: standard deviation of what a page view adds to the ranker's scores, of variance 1.
        among: standard deviation of a query's own offset to the relevance of its documents.
        agreement: correlation of attraction, and of satisfaction, with relevance.
        level, spread: log-odds of attraction are level + spread z, with a normal z.
        satisfied: the same level for satisfaction.
        users: who clicks.
    """

    queries: float
    head: float
    jitter: float
    among: float
    agreement: float
    level: float
    spread: float
    satisfied: float
    users: Users

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The law of a file."""
        law = read_yaml(path)
        return cls(**{**law, "users": Users(**law["users"])})


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Documents of queries among which a production ranker chooses, [queries, candidates].

    Relevance, attraction, satisfaction and score have variance 1; relevance about the query's own
    level. `traits` are [queries, candidates, traits].
    """

    traits: np.ndarray
    relevance: np.ndarray
    attraction: np.ndarray
    satisfaction: np.ndarray
    score: np.ndarray


def mixed(parts: list[tuple[float, np.ndarray]], rest: np.ndarray) -> np.ndarray:
    """Variance 1, of which each part has its share, and the rest what is left."""
    left = 1 - sum(share for share, _ in parts)
    total = np.float32(np.sqrt(max(left, 0))) * rest
    for share, each in parts:
        total = total + np.float32(np.sqrt(share)) * each
    return total


def clicks_of(
    rng: np.random.Generator, attracts: np.ndarray, satisfies: np.ndarray, users: Users
) -> np.ndarray:
    """[pages, K] bool: draw clicks, given P(attractive) and P(satisfied | clicked) of documents."""
    pages, length = attracts.shape
    attracted = rng.random(attracts.shape) < attracts
    satisfied = rng.random(attracts.shape) < satisfies
    patient = rng.random(attracts.shape)
    reader = rng.random(pages) < users.readers
    chance = rng.random(attracts.shape)
    reads, clicks, last = reader.copy(), np.zeros(attracts.shape, bool), np.zeros(pages)
    for k in range(length):
        glanced = chance[:, k] < (k + 1 - last) ** -users.eta
        clicks[:, k] = attracted[:, k] & np.where(reader, reads, glanced)
        if users.remember:
            last[clicks[:, k]] = k + 1
        goes = np.where(
            clicks[:, k],
            ~satisfied[:, k] & (patient[:, k] < users.unsatisfied),
            patient[:, k] < users.patience,
        )
        reads &= goes
    return clicks

"""Logging policies: how users' documents were ranked (Hager et al. 2025, Section 7)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.files.rankings import Rankings, mask, pad, rank, read_rankings
from twotowers.files.tables import read_table
from twotowers.logs.cells import Pairs

NOISE_HIGH = 4.0
TYPES = {
    "split": pa.string(),
    "query": pa.int64(),
    "document": pa.int32(),
    "relevance": pa.float32(),
    "score": pa.float32(),
}


def policy_scores(scores: np.ndarray, strength: float, *, rng: np.random.Generator) -> np.ndarray:
    """Scores of a policy of the given strength (Eq. 25): 1 is the ranker, 0 random, -1 reversed.

    Noise, U(0, 4), is drawn once per query-document pair, so the policy is deterministic. Only the
    ranker's score, about [0, 4], has the sign, as in the published code. The printed formula also
    flips the noise, which has the same distribution up to a constant.
    """
    noise = rng.uniform(0, NOISE_HIGH, len(scores))
    return strength * scores.astype(float) + (1 - abs(strength)) * noise


def ranking_order(scores: np.ndarray, where: np.ndarray, *, tiebreak: np.ndarray) -> np.ndarray:
    """[queries, positions] int64 list index of the document at each position, best first.

    `where` is False on padding, which ranks last; equal scores are ordered by `tiebreak`, lowest
    first.
    """
    return np.lexsort((tiebreak, np.where(where, -scores, np.inf)), axis=-1)


def exposure(
    lists: Rankings,
    scores: np.ndarray,
    temperature: float,
    positions: int,
    *,
    rng: np.random.Generator,
) -> np.ndarray:
    """The epsilon-greedy policy pi(d, k | q): [documents, positions] expected impressions.

    The greedy policy sorts lists of at most `positions` documents by scores, the highest first; a
    share `temperature` of the sessions is shuffled. Ties are broken at random.
    """
    where = mask(lists.lengths, positions)
    ties = rng.random(where.shape)
    order = ranking_order(pad(scores, lists.offsets, positions), where, tiebreak=ties)
    policy = (where[:, :, None] & where[:, None, :]) * temperature / where.sum(-1)[:, None, None]
    query, position = np.nonzero(where)
    policy[query, order[query, position], position] += 1 - temperature
    return policy[where]


@dataclass(frozen=True)
class NoisyOrder:
    """Rankings of a policy whose noise is drawn anew in each session, as in `policy_scores`.

    `scores` [queries, positions] are strength x those of the ranker, -inf on padding; the noise is
    U(0, noise).
    """

    scores: np.ndarray
    noise: float

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and positions."""
        return self.scores.shape

    def draw(self, query: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """[sessions, positions] list index of the document at each position; padding is last."""
        scores = self.scores[query]
        return np.argsort(-scores - self.noise * rng.random(scores.shape), axis=1)


def ranks(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """[rows] int32: rank of each document within its query, from 1, the highest score first.

    Ties keep the row order.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return pd.Series(-scores).groupby(query).rank(method="first").to_numpy(np.int32)


@dataclass(frozen=True)
class ScoredPairs:
    """One split of a policy file: float32 [rows] relevance in [0, 4], and the ranker's scores."""

    pairs: Pairs
    relevance: np.ndarray
    score: np.ndarray


def read_scores(path: str | Path, split: str, first: int | None = None) -> ScoredPairs:
    """Read one split of a policy file: its first queries, or all."""
    table = read_table(path, TYPES)
    table = table.filter(pc.equal(table["split"], split))
    query = table["query"].to_numpy()
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(query)) + 1, [len(query)]])
    offsets = offsets[: None if first is None else first + 1]
    rows = slice(0, offsets[-1])
    return ScoredPairs(
        pairs=Pairs(query[rows], table["document"].to_numpy()[rows], offsets),
        relevance=table["relevance"].to_numpy()[rows],
        score=table["score"].to_numpy()[rows],
    )


def displayed(rankings: str | Path, policy: str | Path, *, top: int) -> Rankings:
    """What users were shown: the first `top` documents of every training query, in that order."""
    return rank(read_rankings(rankings), read_scores(policy, "train").score, top=top)

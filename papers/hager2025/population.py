"""What studies at population level share: a policy's expectations instead of a log.

Fits of expected clicks have no sampling noise, so a few hundred queries tell as much as all.
"""

import numpy as np

from twotowers.files.rankings import Rankings, mask, pad
from twotowers.fitting.newton import AdditiveOptimum, fit_embedding, fit_linear
from twotowers.logs.policies import ranking_order
from twotowers.models.additive import Additive


def exposure(
    lists: Rankings,
    scores: np.ndarray,
    temperature: float,
    positions: int,
    *,
    rng: np.random.Generator,
) -> np.ndarray:
    """The epsilon-greedy policy pi(d, k | q): [documents, positions].

    The greedy policy sorts by scores, the highest first; a share `temperature` of the sessions is
    shuffled. Ties are broken at random.
    """
    where = mask(lists.lengths, positions)
    ties = rng.random(where.shape)
    order = ranking_order(pad(scores, lists.offsets, positions), where, tiebreak=ties)
    policy = (where[:, :, None] & where[:, None, :]) * temperature / where.sum(-1)[:, None, None]
    query, position = np.nonzero(where)
    policy[query, order[query, position], position] += 1 - temperature
    return policy[where]


def click_chance(relevance: np.ndarray, positions: int) -> np.ndarray:
    """The true click probability: [documents, positions]."""
    return Additive().chance(relevance, positions)


def optimum(
    features: np.ndarray | None, exposure: np.ndarray, clicks: np.ndarray, **how
) -> AdditiveOptimum:
    """Of the negative log-likelihood (Eq. 16), linear in features or a parameter per document."""
    if features is None:
        return fit_embedding(exposure, clicks, **how)
    return fit_linear(features, exposure, clicks, **how)

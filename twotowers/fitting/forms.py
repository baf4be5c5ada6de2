"""Product or odds: which form of a curve predicts better where held-out clicks fall?

Under the product form a click has the probability a_d e_k, under the additive one the log-odds
gamma_d + theta_k. Both curves are given. The impressions of each cell are divided at random into
two parts. The larger one tells how attractive the pair is: a posterior on a grid, whose prior has
any shape (weights at their maximum likelihood, by EM; Kiefer and Wolfowitz 1956). The other part is
predicted, given how many clicks it had,

    l_d = ln  sum_g w_dg prod_k Bin(c_dk; n_dk, p_gk)  /  sum_g w_dg P(sum_k c_dk = C_d | g).

Without the denominator, the form that better hides how relevance follows rank would win. With it,
only where the clicks of a pair fell counts, as in the curves themselves. Both forms have as many
parameters, so they are compared as they are: the mean of l_d(product) - l_d(odds) per click, with
an error clustered by query. It is above 0 where the product form predicts better. The mean is over
several divisions, so that it hangs little on one of them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from twotowers.fitting.curves import Curve
from twotowers.fitting.pair_counts import PairCounts
from twotowers.intervals import Tested, mean
from twotowers.randomness import draw_clicks, some

GRID = 24
"""Points of the prior."""
STEPS = 60
"""Of EM for its weights; they need not be exact, since both forms are treated alike."""
DIVISIONS = 3
HELD = 5
"""The most held-out impressions of a cell."""
ENTRIES = 2_000_000
"""Of the largest array in memory."""
MOST = 100_000
"""Rows that are looked at: whole queries, chosen at random."""


def compare_forms(
    counts: PairCounts, product: Curve, odds: Curve, *, rng: np.random.Generator
) -> Tested:
    """By how much the product form predicts better than odds: in log-likelihood per held-out click
    that tells (nats), NaN if none does.

    Impressions are whole numbers, best also of pairs without a click. `rng` divides them, and
    chooses queries if there are too many.
    """
    known = [np.isfinite(each.estimate) & (each.estimate > 0) for each in (product, odds)]
    rows = (known[0] & known[1])[counts.factor]
    query = counts.cluster[counts.pair]
    size = np.bincount(query, minlength=counts.cluster.max(initial=-1) + 1)
    rows &= some(size, MOST, rng)[query]
    several = np.bincount(counts.pair[rows], minlength=len(counts.cluster)) > 1
    rows &= several[counts.pair]
    pair, factor = np.unique(counts.pair[rows], return_inverse=True)[1], counts.factor[rows]
    shown, clicked = (each[rows] for each in counts.whole())
    query = query[rows]
    chances = _chances(product, factor), _odds(odds, factor)
    gain, size = np.zeros((2, len(counts.query)))
    for _ in range(DIVISIONS):
        held = np.minimum(shown // 2 + (shown % 2) * rng.integers(2, size=len(shown)), HELD)
        hits = draw_clicks(rng, clicked, shown, held)
        # A pair tells if its held-out clicks might have fallen elsewhere.
        space, number, places = (np.bincount(pair, each) for each in (held, hits, held > 0))
        tells = ((number > 0) & (number < space) & (places > 1))[pair]
        if not tells.any():
            continue
        known = pair, shown - held, clicked - hits, held, hits, tells
        by_product, by_odds = (_predicted(*known, chance) for chance in chances)
        starts = np.flatnonzero(np.diff(pair[tells], prepend=-1))
        np.add.at(gain, query[tells][starts], by_product - by_odds)
        np.add.at(size, query[tells], hits[tells])
    if not size.any():
        return Tested()
    return mean(gain, size)


def _chances(curve: Curve, factor: np.ndarray) -> np.ndarray:
    """[rows, grid] a_g e_k. No product of both is above 1."""
    ratio = np.nan_to_num(curve.estimate) / np.nanmax(curve.estimate)
    return expit(np.linspace(-9, 6, GRID)) * ratio[factor, None]


def _odds(curve: Curve, factor: np.ndarray) -> np.ndarray:
    """[rows, grid] sigmoid(gamma_g + theta_k)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = np.log(curve.estimate / np.nanmax(curve.estimate))
    return expit(np.linspace(-9, 6, GRID) + np.nan_to_num(theta, neginf=-30)[factor, None])


def _predicted(pair, shown, clicked, held, hits, tells, chance: np.ndarray) -> np.ndarray:
    """[pairs that tell] log-likelihood of where their held-out clicks fell."""
    chance = np.clip(chance, 1e-12, 1 - 1e-9)
    yes, no = np.log(chance), np.log1p(-chance)
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    own = np.add.reduceat(clicked[:, None] * yes + (shown - clicked)[:, None] * no, starts)
    weight = np.full(chance.shape[1], 1 / chance.shape[1])
    scaled = np.exp(own - own.max(1, keepdims=True))
    for _ in range(STEPS):
        share = scaled * weight
        weight = (share / share.sum(1, keepdims=True)).mean(0)
    kept = np.unique(pair[tells])
    prior = np.log(np.maximum(weight, 1e-300)) + own[kept]
    pair = np.unique(pair[tells], return_inverse=True)[1]
    yes, no, held, hits = yes[tells], no[tells], held[tells], hits[tells]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    fell = np.add.reduceat(hits[:, None] * yes + (held - hits)[:, None] * no, starts)
    # That of all ways in which as many clicks might have fallen on single impressions.
    every = _as_many(chance[tells], held, hits, starts)
    return np.logaddexp.reduce(prior + fell, 1) - np.logaddexp.reduce(prior + every, 1)


def _as_many(chance, held, hits, starts) -> np.ndarray:
    """[pairs, grid] ln P(as many clicks), by the characteristic function of their number."""
    sizes, clicks = (np.add.reduceat(each, starts) for each in (held, hits))
    lengths = np.diff(starts, append=len(held))
    logs = np.empty((len(starts), chance.shape[1]))
    order = np.argsort(sizes, kind="stable")
    while len(order):
        terms = int(sizes[order[0]] * 1.2) + 1
        alike = min(int(np.searchsorted(sizes[order], terms - 1, side="right")), len(order))
        rows = np.cumsum(sizes[order[:alike]])
        alike = max(int(np.searchsorted(rows, ENTRIES // (terms * chance.shape[1]))), 1)
        block, order = order[:alike], order[alike:]
        # A row per impression: a complex product is much faster than a logarithm.
        row = np.concatenate([np.arange(starts[k], starts[k] + lengths[k]) for k in block])
        row = np.repeat(row, held[row])
        first = np.cumsum(sizes[block]) - sizes[block]
        # Half of the terms are conjugates of the others, and count twice.
        node = np.arange(terms // 2 + 1)
        times = np.where((node == 0) | (2 * node == terms), 1, 2) / terms
        turn = np.exp(2j * np.pi * np.arange(terms) / terms)
        law = np.multiply.reduceat(1 + chance[row][:, :, None] * (turn[node] - 1), first)
        back = turn[(-clicks[block][:, None] * node) % terms] * times
        chances = np.einsum("dgm,dm->dg", law, back).real
        logs[block] = np.log(np.maximum(chances, 1e-300))
    return logs

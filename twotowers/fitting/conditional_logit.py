"""The conditional logit on counts, exactly: where the clicks of a pair fell, given how many it had.

In the additive form the log-odds of a click are gamma_d + theta_k. Given the clicks C_d of a pair,
gamma_d drops out (Chamberlain 1980): cells with n_k impressions have the binomials of q_k,
conditioned on their sum S,

    P(c | S = C) = prod_k Bin(c_k; n_k, q_k) / P(S = C),    logit q_k = theta_k + lambda,

for any lambda. Textbooks compute P(S = C) by a recursion over elementary symmetric polynomials,
in time that grows with the square of the counts. Here it is a sum of the characteristic function,

    P(S = C) = 1/M sum_m phi(t_m) e^(-i t_m C),    t_m = 2 pi m / M,
    phi(t) = prod_k (1 - q_k + q_k e^(it))^n_k,

which is exact for M > N = sum_k n_k. With the lambda for which E[S] = C no term cancels another.
Then P(|S - C| >= M) <= 2 exp(-M^2 / (2 V + 2 M / 3)) with V = sum_k n_k q_k (1 - q_k) (Bernstein),
so M = 26 + 9 sqrt(V) misses less than a rounding error, however large the counts. Means and
covariances of c are sums of the same kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from twotowers.fitting.curves import laplacian_of
from twotowers.fitting.pair_counts import PairCounts

ENTRIES = 100_000
"""Of the largest array: few enough for the cache of a core."""
VANISHED = 37
"""exp(-37) < 2^-53, a rounding error of a probability: smaller terms are left out."""
CLASSES = np.unique(np.round(2.0 ** np.arange(1, 40, 0.25)).astype(int))
"""The numbers of terms M: pairs with alike ones are computed together."""


@dataclass(frozen=True)
class Moments:
    """A conditional likelihood at theta, with its derivatives.

    Attributes:
        likelihood: its logarithm, up to a constant.
        expected: [rows] E[c | C]; the score of a factor is the sum of clicks - expected.
        weight: [rows] v, so that a pair's covariance is about diag(v) - v v' / sum(v).
        information: [K, K] the sum of the pairs' covariances.
    """

    likelihood: float
    expected: np.ndarray
    weight: np.ndarray
    information: np.ndarray


def logit_moments(useful: PairCounts, theta: np.ndarray) -> Moments:
    """The exact conditional logit at log-odds `theta` [K].

    `useful` are pairs with some clicks and some impressions without, under several factors.
    """
    factors = useful.factors
    starts = useful.starts
    clicks = np.add.reduceat(useful.clicks, starts)
    shown = np.add.reduceat(useful.impressions, starts)
    chance = expit(theta[useful.factor] + tilt(useful, theta, clicks, starts)[useful.pair])
    variance = useful.impressions * chance * (1 - chance)
    total = np.add.reduceat(variance, starts)
    terms = np.minimum(shown + 1, 26 + np.ceil(9 * np.sqrt(total)))
    kind = np.searchsorted(CLASSES, terms)
    expected = np.empty_like(chance)
    information = np.zeros((factors, factors))
    likelihood = xlogy(useful.clicks, chance).sum()
    likelihood += xlog1py(useful.impressions - useful.clicks, -chance).sum()
    lengths = np.diff(starts, append=len(useful.pair))
    for number, pairs in _blocks(kind, total, factors):
        rows = np.repeat(starts[pairs] - np.cumsum(lengths[pairs]) + lengths[pairs], lengths[pairs])
        rows += np.arange(len(rows))
        local = np.repeat(np.arange(len(pairs)), lengths[pairs])
        value, mean, covariance = _sums(
            local,
            useful.factor[rows],
            useful.impressions[rows],
            chance[rows],
            clicks[pairs],
            total[pairs].min(),
            CLASSES[number],
            factors,
        )
        likelihood -= np.log(value).sum()
        expected[rows] = mean
        information += covariance
    # Exact if the pair's cells are as likely as each other: the variance of drawing without return.
    weight = variance * (shown / np.maximum(shown - 1, 1))[useful.pair]
    return Moments(likelihood, expected, weight, laplacian_of(-information))


def tilt(useful: PairCounts, theta, clicks, starts) -> np.ndarray:
    """[pairs] lambda with E[S] = C, by Newton's method within a bracket."""
    logits = theta[useful.factor]
    target = np.log(clicks / (np.add.reduceat(useful.impressions, starts) - clicks))
    low = target - np.maximum.reduceat(logits, starts)
    high = target - np.minimum.reduceat(logits, starts)
    level = (low + high) / 2
    for _ in range(60):
        chance = expit(logits + level[useful.pair])
        excess = np.add.reduceat(useful.impressions * chance, starts) - clicks
        slope = np.add.reduceat(useful.impressions * chance * (1 - chance), starts)
        low, high = np.where(excess < 0, level, low), np.where(excess > 0, level, high)
        if (np.abs(excess) < 1e-12 * np.maximum(clicks, 1)).all():
            break
        step = level - excess / np.maximum(slope, 1e-300)
        level = np.where((step >= low) & (step <= high), step, (low + high) / 2)
    return level


def _blocks(kind: np.ndarray, total: np.ndarray, factors: int) -> Iterator[tuple[int, np.ndarray]]:
    """Pairs with as many terms and alike variances, as many at a time as a cache holds."""
    order = np.lexsort((total, kind))
    for number, pairs in enumerate(np.split(order, np.cumsum(np.bincount(kind))[:-1])):
        step = max(ENTRIES // int(CLASSES[number] * factors), 1)
        for start in range(0, len(pairs), step):
            yield number, np.sort(pairs[start : start + step])


def _sums(local, factor, impressions, chance, clicks, spread: float, terms: int, factors: int):
    """P(S = C) of each pair, E[c | C] of each row, and the sum of covariances [K, K].

    Half of the terms are conjugates of the others, and count twice. Terms at large t vanish:
    |phi(t)| <= exp(-V (1 - cos t)), where V is at least `spread`.
    """
    nodes = np.arange(terms // 2 + 1)
    turns = 2 * np.pi * nodes / terms
    nodes, turns = (each[spread * (1 - np.cos(turns)) <= VANISHED] for each in (nodes, turns))
    times = np.where((nodes == 0) | (2 * nodes == terms), 1, 2) / terms
    cosine, sine = np.cos(turns), np.sin(turns)
    starts = np.flatnonzero(np.diff(local, prepend=-1))
    shown, chance = impressions[:, None], chance[:, None]
    # Real and imaginary parts apart, since numpy is slow with complex numbers: a cell's
    # 1 - q + q e^(it). Its square is 1 - less, and far below 1 where clicks are not rare.
    real, imag = 1 - chance * (1 - cosine), chance * sine
    less = 2 * chance * (1 - chance) * (1 - cosine)
    norm = real**2 + imag**2
    # In [0, pi], as imag is not negative. arctan2 would take twice the time.
    with np.errstate(divide="ignore"):
        angle = np.arctan(imag / real) + np.pi * (real < 0)
    # Near 0 the square itself has more digits: at a rate of one half the last term is 0.
    size = np.log1p(-np.minimum(less, 0.5)) / 2
    near = less > 0.5
    size[near] = np.log(norm[near]) / 2
    size, angle = (np.add.reduceat(shown * each, starts) for each in (size, angle))
    angle -= 2 * np.pi * ((clicks[:, None] * nodes) % terms) / terms
    # The terms w are squares of these roots.
    root = np.exp(size / 2) * np.sqrt(times)
    up, aside = root * np.cos(angle / 2), root * np.sin(angle / 2)
    value = (up**2 - aside**2).sum(1)
    # With E = n q e^(it) / (1 - q + q e^(it)), sums of w E and of products w E E'.
    shown = shown * chance / norm
    real, imag = shown * (cosine * real + sine * imag), shown * (sine * real - cosine * imag)
    up, aside = ((each / np.sqrt(value)[:, None])[local] for each in (up, aside))
    parts = up * real - aside * imag, up * imag + aside * real
    mean = (up * parts[0] - aside * parts[1]).sum(1)
    covariance = np.zeros((factors, factors))
    for part, sign in zip(parts, (1, -1), strict=True):
        dense = np.zeros((factors, len(clicks), len(nodes)))
        dense[factor, local] = part
        flat = dense.reshape(factors, -1)
        covariance += sign * (flat @ flat.T)
    means = np.zeros((factors, len(clicks)))
    means[factor, local] = mean
    covariance -= means @ means.T
    return value, mean, covariance

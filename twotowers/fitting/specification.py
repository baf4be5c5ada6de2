"""Is examination the same for attractive and for unattractive documents? A test of a curve's form.

Under the product form the log-ratio theta_k of examination is the same for every pair. Under the
additive form the log-odds ratio is. If the form is wrong, the ratio changes with attraction,

    theta_dk = theta_k (1 + slope z_d),    z_d = ln of the attraction of pair d, centred,

and the slope is not 0. The pair's own click rate cannot stand for z_d, because it holds the clicks
that are to be explained. So the impressions of each cell are divided at random into halves. One
half gives z_d, the other the score of the slope, given its clicks; then they change places. Clicks
of different impressions are independent, so the score has mean 0 under the form at any click rate.
It is added up over several divisions, so that it hangs little on one of them. It is made orthogonal
to the scores of theta (Neyman 1959), and its error is clustered by query.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from twotowers.fitting.conditional import FORMS, by_pair, residuals, unsure
from twotowers.fitting.curves import Blocks, Curve, inverse_root
from twotowers.fitting.pair_counts import PairCounts
from twotowers.intervals import Tested, quantile, single

DIVISIONS, CELLS = 10, 1_000_000
"""Divisions of a log; fewer, but one, if together they would divide more cells."""
LEVEL, BOTH = 0.01, 0.05
"""Chance of a false alarm at any position; and that of one sign of each neighbour."""
LEAST = 0.1
"""Logarithms of examination that differ by less are alike in practice."""


def fit_slope(
    counts: PairCounts, curve: Curve, *, form: str = "product", rng: np.random.Generator
) -> Tested:
    """By what share of themselves the log-ratios of a curve, of `fit_conditional` by the same form,
    change for a document that attracts e = 2.7 times as much; and the test that it is 0.

    Impressions are whole numbers, which `rng` divides. If no pair tells, the slope is NaN, and p 1.
    """
    known = np.isfinite(curve.estimate) & (curve.estimate > 0)
    theta = np.log(np.where(known, curve.estimate, 1))
    inside = known[counts.factor]
    scores = np.zeros(int(counts.cluster.max(initial=-1)) + 1)
    information = 0.0
    for (n, c), (other_n, other_c) in _halves(counts, rng):
        exposure = np.bincount(counts.pair, n * np.exp(theta)[counts.factor])
        attraction = np.log((np.bincount(counts.pair, c) + 0.5) / (exposure + 1))
        rows = inside & (other_n > 0)
        pair, factor = counts.pair[rows], counts.factor[rows]
        # Each pair is a query of its own, so that its number is kept.
        columns, own = (pair, factor, other_n[rows], other_c[rows]), {"query": pair}
        useful = PairCounts.of_arrays(*columns, **own, factors=counts.factors)
        useful = useful.where(unsure(useful) if form == "additive" else True)
        if len(useful.pair):
            score, more = _efficient(useful, theta, attraction[useful.query], form, curve.reference)
            query = counts.cluster[useful.query]
            scores += np.bincount(query[useful.pair], score, len(scores))
            information += more
    if not (information > 0 and scores.any()):
        return Tested(p=1.0)
    return single(scores / information, scores.sum() / information)


def _halves(counts: PairCounts, rng: np.random.Generator) -> Iterator[tuple]:
    """Impressions and clicks of both halves, in either order, of each division."""
    for _ in range(max(min(DIVISIONS, CELLS // max(len(counts.pair), 1)), 1)):
        halves = counts.halved(rng)
        yield from (halves, halves[::-1])


def _efficient(
    useful: PairCounts, theta: np.ndarray, attraction: np.ndarray, form: str, reference: int
) -> tuple[np.ndarray, float]:
    """[rows] scores of the slope, orthogonal to those of theta; and their information.

    `attraction` is [pairs].
    """
    moments = FORMS[form](useful, theta)
    weight, residual = moments.weight, residuals(useful, moments)
    # Centred where it tells, so that slope and level are apart.
    total = np.bincount(useful.pair, weight)
    attraction = attraction - (total @ attraction) / total.sum()
    along = attraction[useful.pair] * theta[useful.factor]
    mean = np.bincount(useful.pair, weight * along) / total
    inner = weight * (along - mean[useful.pair])
    laplacian = Blocks(by_pair(useful, weight), useful.cluster).laplacian()
    root, _ = inverse_root(laplacian, reference)
    project = root @ (root.T @ np.bincount(useful.factor, inner, useful.factors))
    left = along - project[useful.factor]
    return left * residual, float((inner * left).sum())


def odd_positions(
    names: pd.DataFrame, log_estimate: np.ndarray, covariance: np.ndarray, freedom: np.ndarray
) -> np.ndarray:
    """Numbers of the bias factors whose position is odd among those with the same other features.

    Users examine less further down, and their curve may bend or fall at a fold, but one position
    that lies off its neighbours on both sides, such as an advert or a module, is not theirs. With
    y = ln e and x = ln position, let r_k be y_k less what the line through both neighbours has at
    x_k. An odd position k gives r_k, and about half of it with the other sign at k - 1 and at
    k + 1; a bend gives r_k alone, and a fall two neighbours with opposite signs. Position k is odd
    if |r_k| is larger than chance allows, all positions together, and both neighbours have the
    other sign. Of two neighbours that rise by more than chance allows, one is odd, too.

    Args:
        names: [K] the features of each factor; with `position`, whole numbers from 1.
        log_estimate: [K] logarithms of examination, NaN where there is none.
        covariance: [K, K] of them.
        freedom: [K] degrees of freedom of their errors.

    Example:
        >>> names = pd.DataFrame({"position": range(1, 9)})
        >>> log_estimate = -np.log(np.arange(1, 9)) - 0.8 * (np.arange(1, 9) == 4)
        >>> odd_positions(names, log_estimate, 1e-4 * np.eye(8), np.full(8, 50.0)).tolist()
        [3]
    """
    odd: set[int] = set()
    known = np.isfinite(log_estimate)
    others = [name for name in names if name != "position"]
    groups = names.groupby(others).indices.values() if others else [np.arange(len(names))]
    tests = max(2 * known.sum(), 1)
    for group in groups:
        group = group[known[group]]
        group = group[np.argsort(names["position"].to_numpy()[group], kind="stable")]
        x, y = np.log(names["position"].to_numpy(float)[group]), log_estimate[group]
        size = len(group)
        if size < 3:
            continue
        spread, free = covariance[np.ix_(group, group)], freedom[group].min()
        sure, sign = quantile(free, level=1 - LEVEL / tests), quantile(free, level=1 - 2 * BOTH)
        middle = np.arange(1, size - 1)
        right = (x[middle] - x[middle - 1]) / (x[middle + 1] - x[middle - 1])
        off = np.zeros((size, size))
        off[middle, middle], off[middle, middle + 1] = 1, -right
        off[middle, middle - 1] = right - 1
        rise = np.eye(size, k=1) - np.eye(size)
        rise[-1] = 0
        (r, error), (up, up_error) = (
            (each @ y, np.sqrt(np.maximum(((each @ spread) * each).sum(1), 1e-300)))
            for each in (off, rise)
        )
        t = r / error
        for k in middle[1:-1]:
            near = -t[[k - 1, k + 1]] * np.sign(r[k])
            if abs(r[k]) > max(sure * error[k], LEAST) and (near > sign).all():
                odd.add(int(group[k]))
        for k in np.flatnonzero((up > np.maximum(sure * up_error, LEAST))[:-1]):
            # The lower one is odd if those around both are as high as the higher one.
            around = y[k - 1] if k else y[min(k + 2, size - 1)]
            high = around >= y[k + 1] if k else around > y[k]
            odd.add(int(group[k] if high else group[k + 1]))
    return np.array(sorted(odd), int)

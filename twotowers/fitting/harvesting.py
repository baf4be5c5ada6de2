"""Harvesting of interventions: ratios of click rates of documents seen at two positions.

Let r_dk be the click rate of a query-document pair d under bias factor k, and

    c_kl = sum of r_dk over the N_kl pairs d that were seen under both k and l.

If clicks are examination times attraction, c_kl / c_lk estimates e_k / e_l (Agarwal et al. 2019,
"Estimating position bias without intrusive interventions", Section 4):

* Pivot One: e_k / e_1 = c_k1 / c_1k.
* Adjacent Chain: e_k / e_1 = prod over j < k of c_j+1,j / c_j,j+1.
* All Pairs: the maximum over e and r of sum over k != l of
  c_kl ln(e_k r_kl) + (N_kl - c_kl) ln(1 - e_k r_kl), with r_kl = r_lk.
* Naive: click rates, which take all pairs, and hold relevance too.

A pair counts once, however often it was shown. `twotowers.fitting.conditional` weighs pairs by what
they tell. Errors are those of the logarithm by the delta method: each estimate is a smooth function
of sums over queries.
"""

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.conditional import APART, NEVER, UNCLICKED
from twotowers.fitting.curves import ALONE, LEVERAGE, Curve, as_curve, contrasts
from twotowers.fitting.maximise import Point, Step, maximise
from twotowers.fitting.pair_counts import PairCounts, factor_components
from twotowers.intervals import effective_clusters

CERTAIN = 1 - 1e-9
"""Of a click: the likelihood has no curvature at 1, where every impression was clicked."""
STILL = 1e-6
"""Of its standard deviation: a query that moves a ratio by less moves it by rounding alone."""
MOST_FACTORS = 200
"""The slopes of each estimate by all c_kl are in memory."""
ENTRIES = 4_000_000
"""Of the largest array in memory."""


def harvest(
    counts: PairCounts, estimator: str = "all_pairs", *, reference: int = 0, collision: bool = False
) -> Curve:
    """Examination relative to the reference, by one of the estimators of this module.

    `estimator` is 'all_pairs', 'adjacent_chain', 'pivot_one' or 'naive'. `collision`: All Pairs as
    published by Hager et al. (2024), whose r_kl belongs to the product of both positions, so that
    positions (1, 6) and (2, 3) share one.
    """
    if counts.factors > MOST_FACTORS:
        raise InputError(
            f"{counts.factors:,} bias factors", field="factor", expected=f"at most {MOST_FACTORS}"
        )
    shape = len(counts.cluster), counts.factors
    rate, seen, noise = np.zeros((3, *shape))
    rate[counts.pair, counts.factor] = counts.clicks / counts.impressions
    noise[counts.pair, counts.factor] = counts.clicks / counts.impressions**2
    seen[counts.pair, counts.factor] = 1
    several = seen.sum(1) > 1
    rate, noise, seen = rate[several], noise[several], seen[several]
    cluster = counts.cluster[several]
    own = 1 - np.eye(counts.factors)
    clicks, pairs = (rate.T @ seen) * own, (seen.T @ seen) * own
    if estimator == "naive":
        estimate, covariance, queries = _naive(counts, reference)
        resistance, alone = np.diag(covariance), np.zeros(counts.factors)
    else:
        settings = {"collision": collision} if estimator == "all_pairs" else {}
        estimate, of_clicks, of_pairs = ESTIMATORS[estimator](clicks, pairs, reference, **settings)
        # What each pair adds to each logarithm, and to its variance; and so each query.
        steps, spread = np.zeros((2, int(cluster.max(initial=-1)) + 1, counts.factors))
        step = max(ENTRIES // counts.factors**2, 1)
        for start in range(0, len(rate), step):
            part = slice(start, start + step)
            slopes = np.tensordot(seen[part], of_clicks, (1, 2))
            moved = np.einsum("djk,dk->dj", slopes, rate[part])
            slopes **= 2
            np.add.at(spread, cluster[part], np.einsum("djk,dk->dj", slopes, noise[part]))
            slopes = np.tensordot(seen[part], of_pairs, (1, 1))
            moved += np.einsum("djl,dl->dj", slopes, seen[part])
            np.add.at(steps, cluster[part], moved)
        still = np.abs(steps) <= STILL * np.sqrt(spread)
        steps[still] = 0
        resistance, alone = spread.sum(0), (spread * still).sum(0)
        covariance = steps.T @ steps + np.diag(alone)
        queries = effective_clusters(steps)
    reason = np.full(counts.factors, "", object)
    reason[~np.isfinite(estimate)] = UNCLICKED
    if estimator != "naive":
        reason[counts.component != counts.component[reference]] = APART
    reason[counts.shown == 0] = NEVER
    reason[reference] = ""
    curve = as_curve(
        counts.names,
        estimate,
        covariance,
        information=clicks,
        resistance=resistance,
        queries=queries,
        reason=reason,
        reference=reference,
    )
    curve.reason[(alone > LEVERAGE * resistance) & (curve.reason == "")] = ALONE
    return curve


def _naive(counts: PairCounts, reference: int):
    """Ratios of click rates, with the errors of independent clicks."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rate = np.log(counts.clicked) - np.log(counts.shown)
        variance = 1 / counts.clicked - 1 / counts.shown
        estimate = np.where(counts.clicked > 0, log_rate - log_rate[reference], np.nan)
    subtract = contrasts(len(variance), reference)
    covariance = subtract @ np.diag(np.where(np.isfinite(variance), variance, 0)) @ subtract.T
    return estimate, covariance, np.full(len(variance), np.inf)


def _link(clicks: np.ndarray, k: int, l: int) -> tuple[float, np.ndarray]:  # noqa: E741
    """ln(c_kl / c_lk), and its derivatives by c; NaN where a side has no clicks."""
    slope = np.zeros_like(clicks)
    if not (clicks[k, l] > 0 and clicks[l, k] > 0):
        return np.nan, slope
    slope[k, l], slope[l, k] = 1 / clicks[k, l], -1 / clicks[l, k]
    return float(np.log(clicks[k, l] / clicks[l, k])), slope


def _pivot_one(clicks, pairs, reference):
    factors = len(clicks)
    links = [_link(clicks, k, reference) for k in range(factors)]
    estimate = np.array([value for value, _ in links])
    estimate[reference] = 0
    slopes = np.stack([slope for _, slope in links])
    return estimate, slopes, np.zeros_like(slopes)


def _adjacent_chain(clicks, pairs, reference):
    factors = len(clicks)
    links = [_link(clicks, k + 1, k) for k in range(factors - 1)]
    estimate = np.concatenate([[0], np.cumsum([value for value, _ in links])])
    # Steps on both sides of the reference: those behind a broken link are not known.
    if reference:
        back = np.cumsum([value for value, _ in links][:reference][::-1])[::-1]
        ahead = np.cumsum([value for value, _ in links][reference:])
        estimate = np.concatenate([-back, [0], ahead])
    steps = [np.zeros_like(clicks)] + [slope for _, slope in links]
    slopes = np.cumsum(steps, 0)
    slopes = slopes - slopes[reference]
    return estimate, slopes, np.zeros_like(slopes)


def _all_pairs(clicks, pairs, reference, *, collision: bool):
    """The optimum in the logarithms of e and r."""
    factors = len(clicks)
    k, l = np.nonzero(pairs)  # noqa: E741
    low, high = np.minimum(k, l), np.maximum(k, l)
    _, group = np.unique(
        (k + 1) * (l + 1) if collision else low * factors + high, return_inverse=True
    )
    c, n = clicks[k, l], pairs[k, l]
    # Without clicks r_kl or e_k is 0, and so tells of nothing else.
    usable = (np.bincount(group, c)[group] > 0) & (np.bincount(k, c, factors)[k] > 0)
    usable &= np.bincount(l, c, factors)[l] > 0
    k, l, c, n = k[usable], l[usable], c[usable], n[usable]  # noqa: E741
    _, group = np.unique(group[usable], return_inverse=True)
    groups = int(group.max(initial=-1)) + 1
    shared = np.log(np.minimum(np.bincount(group, c, groups) / np.bincount(group, n, groups), 0.5))

    def projected(weight):
        """Sums of weights by group and by group and factor, and the inverse for the factors."""
        total = np.bincount(group, weight, groups)
        table = np.zeros((groups, factors))
        np.add.at(table, (group, k), weight)
        laplacian = np.diag(table.sum(0)) - table.T @ (table / np.maximum(total, 1e-300)[:, None])
        return total, table, np.linalg.pinv(laplacian, rcond=1e-10, hermitian=True)

    def point(parameters: np.ndarray) -> Point:
        examination, shared = np.split(parameters, [factors])
        logs = examination[k] + shared[group]
        if (logs >= 0).any():
            return Point(-np.inf, lambda: Step(parameters, 0, 0))
        chance = np.minimum(np.exp(logs), CERTAIN)

        def step() -> Step:
            score = (c - n * chance) / (1 - chance)
            # By Fisher's weights where all was clicked, since the likelihood has no curvature.
            weight = chance / (1 - chance) * np.where(c < n, (n - c) / (1 - chance), n)
            total, table, inverse = projected(weight)
            of_shared = np.bincount(group, score, groups)
            along = np.bincount(k, score, factors) - table.T @ (of_shared / total)
            first = inverse @ along
            second = (of_shared - table @ first) / total
            decrement = along @ first + of_shared**2 @ (1 / total)
            reach = np.abs(first).max(initial=0) + np.abs(second).max(initial=0)
            return Step(np.append(first, second), decrement, reach)

        return Point(c @ logs + (n - c) @ np.log(-np.expm1(logs)), step)

    optimum, _ = maximise(point, np.append(np.zeros(factors), shared))
    examination, shared = np.split(optimum, [factors])
    chance = np.minimum(np.exp(examination[k] + shared[group]), CERTAIN)
    total, table, inverse = projected(n * chance / (1 - chance))
    subtract = contrasts(factors, reference)
    # The score of each cell, less what its r takes of it.
    project = np.zeros((factors, len(k)))
    project[k, np.arange(len(k))] = 1
    project -= (table / total[:, None]).T[:, group]
    slope = (subtract @ inverse @ project) / (1 - chance)
    of_clicks, of_pairs = np.zeros((2, factors, factors, factors))
    of_clicks[:, k, l], of_pairs[:, k, l] = slope, -slope * chance
    linked = factor_components(group, k, factors=factors)
    linked = linked == linked[reference]
    estimate = np.where(linked, examination - examination[reference], np.nan)
    return estimate, of_clicks, of_pairs


ESTIMATORS = {
    "all_pairs": _all_pairs,
    "adjacent_chain": _adjacent_chain,
    "pivot_one": _pivot_one,
    "naive": None,
}

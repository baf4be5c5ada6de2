"""Is a two-tower model of a log wrong? Hausman's test of a linear tower of features.

>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(2000, 2))
>>> pair, factor = np.repeat(np.arange(2000), 3), rng.integers(3, size=6000)
>>> clicks = rng.binomial(9, 1 / (1 + np.exp(factor - x[pair].sum(1))))
>>> counts = PairCounts.of_arrays(
...     pair, factor, np.full(6000, 9), clicks, query=pair // 10, every=True
... )
>>> [hausman(counts, features).alarm for features in (x, x[:, :1])]
[False, True]
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.linalg import solve

from twotowers.errors import InputError
from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.newton import fit_linear
from twotowers.fitting.pair_counts import PairCounts
from twotowers.intervals import Tested, effective_clusters, interval, together
from twotowers.logs.counted import Counts, key_of
from twotowers.logs.features import KEYS, keys_of, rows_of
from twotowers.randomness import some, stream

ALARM = 0.05
"""The chance of a false alarm."""
MOST_ROWS = 20_000
"""Rows of counts that a tower is fitted to: whole queries, chosen at random."""
PRIOR = 0.01
"""Precision of the normal prior of each weight, of features with standard deviation 1."""


@dataclass(frozen=True)
class TowerTest:
    """The test, and the two curves.

    Attributes:
        test: F-test that all differences are 0. Its value is the largest one, with its interval.
        curve: a row per factor: factor (number), conditional and tower (ratios to the reference),
            difference (of logarithms, tower less conditional) with error, low and high, and reason
            why the factor is left out.
        pairs: query-document pairs that the tower was fitted to.
        width: their features.
        missing: share of the impressions whose pair has no features.
    """

    test: Tested
    curve: pd.DataFrame
    pairs: int
    width: int
    missing: float = 0.0

    @property
    def alarm(self) -> bool:
        """Whether the model is wrong, at the level `ALARM`."""
        return self.test.p <= ALARM


def fit_tower(counts: PairCounts, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[K] theta, NaN for a factor that was never shown, never clicked, or always; and [queries, K]
    what each query moves it by.

    Relevance is linear in the features and bias a value per factor,

        logit P(click) = theta_k + w x,

    fitted by the likelihood. The weights have a small normal prior, so that the optimum is finite.
    With the design z = (1{k}, x), the residual e = c - n mu, the variance v of a click count and
    A = sum v z z' + prior, query g moves the parameters by the jackknife's step

        (A - A_g)^-1 sum over g of z e = A^-1 sum over g of z (I - H_g)^-1 e,

    where H_g is its hat matrix, and the sum of the squares of these steps is their covariance,
    clustered by query (CR3 of Bell and McCaffrey 2002). It needs no model of the variance.

    `counts` are of every pair, and `features` [pairs, width] those of each.
    """
    clicked, shown = (
        np.bincount(counts.factor, each, counts.factors)
        for each in (counts.clicks, counts.impressions)
    )
    known = np.flatnonzero((clicked > 0) & (clicked < shown))
    if not len(known):
        raise InputError("no factor was sometimes clicked and sometimes not", field="clicks")
    spread = features.std(0)
    varies = spread > 1e-9 * np.maximum(np.abs(features).max(0), 1e-300)
    features = (features[:, varies] - features[:, varies].mean(0)) / spread[varies]
    rows = np.flatnonzero(np.isin(counts.factor, known))
    pair, factor = counts.pair[rows], np.searchsorted(known, counts.factor[rows])
    n, c = counts.impressions[rows], counts.clicks[rows]
    table = np.zeros((2, len(features), len(known)))
    table[:, pair, factor] = n, c
    optimum = fit_linear(features, *table, prior=PRIOR)
    chance = optimum.probability[pair, factor]
    residual, weight = c - n * chance, np.maximum(n * chance * (1 - chance), 1e-300)
    design = np.hstack([np.eye(len(known))[factor], features[pair]])
    prior = np.repeat([0, PRIOR], [len(known), features.shape[1]])
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design) + np.diag(prior))
    bias = np.full(counts.factors, np.nan)
    bias[known] = optimum.bias
    steps = np.zeros((len(counts.query), counts.factors))
    query = counts.cluster[pair]
    order = np.argsort(query, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        root = np.sqrt(weight[own])
        hat = root[:, None] * (design[own] @ inverse @ design[own].T) * root
        # A query that alone decides a parameter is fitted exactly, so its residual is 0 there.
        left = np.eye(len(own)) * (1 + 1e-9) - hat
        corrected = root * solve(left, residual[own] / root, assume_a="pos")
        steps[query[own[0]], known] = corrected @ design[own] @ inverse[:, : len(known)]
    return bias, steps


def hausman(counts: PairCounts, features: np.ndarray, *, reference: int = 0) -> TowerTest:
    """Compare a linear two-tower model with the conditional estimate.

    The conditional estimate of a curve (`twotowers.fitting.conditional`) has an effect per pair. It
    is right whatever relevance is, and needs documents that were shown at several positions. The
    estimate of a two-tower model (`fit_tower`) uses all documents, and is
    right if relevance is linear in the features. If the model is right both estimate the same, so
    that their difference, of log-ratios to the reference, has mean 0:

        d_k = (theta_k - theta_1 of the model) - (theta_k - theta_1 given each pair's clicks).

    Hausman (1978) takes as its variance the difference of both variances. That needs an efficient
    model and independent clicks, and can be negative. Here each query has a step in d: that of the
    model less that of the conditional estimate, both by the jackknife. The sum of the squares of
    these steps is the covariance of d, whatever both estimates share. Only factors whose
    conditional estimate is beyond doubt take part. A deep tower may be right where the linear one
    is wrong; the test does not tell.

    `counts` are of every pair, and `features` [pairs, width] those of each.
    """
    curve = fit_conditional(counts, form="additive", reference=reference)
    bias, steps = fit_tower(counts, features)
    bias, steps = bias - bias[reference], steps - steps[:, [reference]]
    other = np.arange(counts.factors) != reference
    used = other & (curve.estimate > 0) & (curve.reason == "") & np.isfinite(bias)
    with np.errstate(divide="ignore"):
        difference = np.where(used, bias - np.log(curve.estimate), np.nan)
    query, given = conditional_influences(counts, curve, form="additive")
    steps[np.searchsorted(counts.query, query)] -= given
    steps = np.where(used, steps, 0)
    error = np.where(used, np.sqrt((steps**2).sum(0)), np.nan)
    low, high = interval(difference, error, effective_clusters(steps))
    reason = np.where(other & ~used & (curve.reason == ""), "the tower has no estimate", "")
    table = pd.DataFrame(
        {
            "factor": np.arange(counts.factors),
            "conditional": curve.estimate,
            "tower": np.exp(bias),
            "difference": difference,
            "error": error,
            "low": low,
            "high": high,
            "reason": np.where(curve.reason != "", curve.reason, reason),
        }
    )
    if not used.any():
        why = "no position has a conditional estimate beyond doubt: documents stay where they are"
        return TowerTest(Tested(reason=why), table, *features.shape)
    largest = table.iloc[int(np.nanargmax(np.abs(difference)))]
    joint = together(steps[:, used], difference[used])
    names = ("difference", "error", "low", "high")
    value, spread, start, end = (float(largest[name]) for name in names)
    test = Tested(value, spread, start, end, joint.p, joint.reason)
    return TowerTest(test, table, *features.shape)


def tower_test(
    cells: Counts, counts: PairCounts, features: pd.DataFrame, *, reference: int
) -> TowerTest:
    """Test a two-tower model of features, of `read_features`, on some queries of a log."""
    bias = list(counts.names.columns)
    rng = stream("diagnosis, towers")
    query, first = cells.groups(["query"])
    kept = some(np.diff(first, append=len(query)), MOST_ROWS, rng)
    rows = cells.where(kept[query]).count([*KEYS, *bias])
    pair, start = rows.groups(KEYS)
    place = rows_of(features, rows.where(start).table().select(list(KEYS)).to_pandas())
    known, shown = (place >= 0)[pair], rows.impressions.astype(float)
    if not known.any():
        raise InputError(
            "no query-document pair of the log has features",
            field="features",
            expected=f"{' and '.join(keys_of(features))} as in the log",
        )
    every, own = (
        key_of({name: each.columns[name] for name in bias}, each.ids) for each in (cells, rows)
    )
    factor = np.searchsorted(np.unique(every), own)
    used = known & (shown > 0)
    columns = (each[used] for each in (pair, factor, shown, rows.clicks))
    of_queries = {"query": rows.columns["query"][used], "factors": counts.factors}
    featured = PairCounts.of_arrays(*columns, **of_queries, every=True)
    numbers = features[features.columns[len(keys_of(features)) :]]
    values = numbers.iloc[place[np.unique(pair[used])]].to_numpy(float)
    missing = float(shown[~known].sum() / shown.sum())
    return replace(hausman(featured, values, reference=reference), missing=missing)

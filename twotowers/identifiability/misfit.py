"""Is a two-tower model of a log wrong? All tests of it, as one.

* `hausman`: the model's curve against the conditional one. It needs documents that change places.
* `residual and score`: do residuals go with the policy's score within a position (Lemma 5.2)?
* `calibration`: observed over expected clicks by position and score.
* `linear against deep`: does a deep tower predict the clicks of other queries better? It is a test
  of the linear tower only.

The p-values are corrected for their number (Holm 1979). So if the model is right, the chance that
any of them is at most `ALARM` is at most `ALARM`. Overlap is no matter of right or wrong and takes
no part.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> pair, factor = np.repeat(np.arange(2000), 3), rng.integers(3, size=6000)
    >>> log_odds = -factor + x[pair].sum(1)
    >>> clicks = rng.binomial(9, 1 / (1 + np.exp(-log_odds)))
    >>> given = pair // 10, pair, factor, np.full(6000, 9), clicks
    >>> misfit(*given, x[pair], tower="linear").alarm
    False
    >>> found = misfit(*given, x[pair, :1], score=x[pair, 1], tower="linear")
    >>> found.alarm, found.tests.query("alarm").test.tolist()
    (True, ['hausman', 'residual and score', 'calibration'])
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.curves import effective_clusters
from twotowers.fitting.feature_towers import Tower, fit_tower
from twotowers.fitting.pair_counts import FeatureCounts
from twotowers.fitting.tower_likelihood import likelihood
from twotowers.identifiability.overlap import folds_of, overlap
from twotowers.identifiability.residuals import calibration, residual_and_score
from twotowers.identifiability.testing import Finding, holm, single, together
from twotowers.intervals import interval

HAUSMAN = "hausman"
FOLDS = 5
"""Of queries."""
ALARM = 0.05
"""The most that the chance of a false alarm may be."""


@dataclass(frozen=True)
class Misfit:
    """What the tests say of a two-tower model.

    Attributes:
        tests: a row per test: test, value, error, low, high, unit, statistic, freedom, p, adjusted
            (by Holm, NaN if it takes no part), alarm, and reason why there is no test.
        alarm: whether any test alarms.
        curve: see `Hausman.curve`.
        calibration: see `calibration`.
        overlap: see `overlap`; empty if it was not asked for.
        tower: the fitted model.
    """

    tests: pd.DataFrame
    alarm: bool
    curve: pd.DataFrame
    calibration: pd.DataFrame
    overlap: pd.DataFrame
    tower: Tower


def misfit(
    query,
    pair,
    factor,
    impressions,
    clicks,
    features,
    *,
    score=None,
    tower: str = "deep",
    form: str = "additive",
    factors: int | None = None,
    reference: int = 0,
    folds: int = FOLDS,
    with_overlap: bool = True,
    seed: int = 0,
) -> Misfit:
    """Test a two-tower model of features on a log.

    Args:
        query: [rows] integers: clicks of one query may depend on each other.
        pair: [rows] integers: the query-document pair.
        factor: [rows] integers in [0, K): position - 1, or another bias factor.
        impressions, clicks: [rows] counts.
        features: [rows, width] what the relevance tower reads.
        score: [rows] the score by which the policy ranked. Without it, minus a pair's mean position
            stands for it.
        tower: 'linear' or 'deep'.
        form: 'additive' (log-odds add up) or 'product'.
        factors: K; by default the largest factor + 1.
        reference: the factor that others are compared with.
        folds: of queries, for what is judged on other queries.
        with_overlap: whether to compute the overlap.
        seed: of the deep tower's start, and of the folds.
    """
    log = FeatureCounts.of_arrays(
        query, pair, factor, impressions, clicks, features, score, factors=factors
    )
    fitted = fit_tower(log, tower, form=form, rng=np.random.default_rng(seed))
    curves = hausman(log, fitted, reference=reference)
    calibrated, cells = calibration(log, fitted)
    tests = [curves.test, residual_and_score(log, fitted), calibrated]
    if tower == "linear":
        tests.append(linear_against_deep(log, form=form, folds=folds, seed=seed))
    table = pd.DataFrame([asdict(each) for each in tests])
    table["adjusted"] = holm(table["p"])
    table["alarm"] = table["adjusted"] <= ALARM
    near = pd.DataFrame()
    if with_overlap:
        near = overlap(log, slope=fitted.slope, rng=np.random.default_rng(seed))
    return Misfit(table, bool(table["alarm"].any()), curves.curve, cells, near, fitted)


def linear_against_deep(
    log: FeatureCounts, *, form: str = "additive", folds: int = FOLDS, seed: int = 0
) -> Finding:
    """Does a deep tower predict the clicks of other queries better than a linear one?

    Both are fitted to all folds of queries but one and judged on that one, by log-likelihood. If
    the linear tower is right the deep one predicts worse, since it has more to estimate. So the
    test has one side, and its chance of a false alarm is below its level.

    Args:
        log: counts and features.
        form: 'additive' or 'product'.
        folds: of queries.
        seed: of folds and starts.

    Returns:
        The value is the gain of the deep tower in nats per thousand impressions.
    """
    rng = np.random.default_rng(seed)
    counts = log.counts
    fold = folds_of(len(counts.query), folds, rng)[log.cluster]
    gain, judged = np.zeros(len(counts.pair)), np.zeros(len(counts.pair), bool)
    for each in range(folds):
        logits = []
        for kind in ("linear", "deep"):
            fitted = fit_tower(log, kind, form=form, rng=rng, rows=fold != each, errors=False)
            logits.append(fitted.bias[counts.factor] + fitted.relevance[counts.pair])
        held = (fold == each) & np.isfinite(logits[0])
        shown, clicked = counts.impressions[held], counts.clicks[held]
        linear, deep = (likelihood(form, shown, clicked, logit[held]) for logit in logits)
        gain[held], judged[held] = deep - linear, True
    total = 1_000 / counts.impressions[judged].sum()
    by_query = np.bincount(log.cluster, gain, len(counts.query)) * total
    centred = by_query - by_query.mean()
    unit = "nats per 1,000 impressions"
    return single("linear against deep", centred, by_query.sum(), unit, side=1)


@dataclass(frozen=True)
class Hausman:
    """The test, and the two curves.

    Attributes:
        test: F-test that all differences are 0. Its value is the largest one, with its interval.
        curve: a row per factor: factor (number), conditional and tower (ratios to the reference),
            difference (of logarithms, tower less conditional) with error, low and high, and reason
            why the factor is left out.
    """

    test: Finding
    curve: pd.DataFrame


def hausman(log: FeatureCounts, tower: Tower, *, reference: int = 0) -> Hausman:
    """Compare a fitted two-tower model with the conditional estimate.

    The conditional estimate of a curve (`twotowers.fitting.conditional`) has an effect per pair. It
    is right whatever relevance is, and needs documents that were shown at several positions. The
    estimate of a two-tower model (`twotowers.fitting.feature_towers`) uses all documents, and is
    right if relevance is a function of features of the tower's kind. If the model is right both
    estimate the same, so that their difference, of log-ratios to the reference, has mean 0:

        d_k = (theta_k - theta_1 of the model) - (theta_k - theta_1 given each pair's clicks).

    Hausman (1978) takes as its variance the difference of both variances. That needs an efficient
    model and independent clicks, and can be negative. Here each query has a step in d: that of the
    model less that of the conditional estimate, both by the jackknife. The sum of the squares of
    these steps is the covariance of d, whatever both estimates share. Only factors whose
    conditional estimate is beyond doubt take part.

    Args:
        log: that of the fit.
        tower: with jackknifed residuals.
        reference: number of the factor that others are compared with.
    """
    counts = log.counts
    curve = fit_conditional(counts, form=tower.form, reference=reference)
    bias = tower.bias - tower.bias[reference]
    other = np.arange(counts.factors) != reference
    used = other & (curve.estimate > 0) & (curve.reason == "") & np.isfinite(bias)
    with np.errstate(divide="ignore"):
        difference = np.where(used, bias - np.log(curve.estimate), np.nan)
    steps = tower.steps(log, reference)
    query, given = conditional_influences(counts, curve, form=tower.form)
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
        return Hausman(Finding(HAUSMAN, reason=why), table)
    largest = table.iloc[int(np.nanargmax(np.abs(difference)))]
    found = together(HAUSMAN, steps[:, used], difference[used])
    shown = {name: float(largest[name]) for name in ("error", "low", "high")}
    found = replace(found, value=float(largest["difference"]), unit="log-ratio", **shown)
    return Hausman(found, table)

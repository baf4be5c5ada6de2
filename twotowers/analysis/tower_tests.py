"""Is a two-tower model of a log wrong? Features join the counts of some queries for Hausman's test.

>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(2000, 2))
>>> pair, factor = np.repeat(np.arange(2000), 3), rng.integers(3, size=6000)
>>> clicks = rng.binomial(9, 1 / (1 + np.exp(factor - x[pair].sum(1))))
>>> given = pair // 10, pair, factor, np.full(6000, 9), clicks
>>> for features in (x[pair], x[pair, :1]):
...     log = FeatureCounts.of_arrays(*given, features)
...     print(hausman(log, fit_tower(log, "linear")).alarm)
False
True
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from twotowers.errors import InputError
from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.curves import effective_clusters
from twotowers.fitting.feature_towers import Tower, fit_tower
from twotowers.fitting.pair_counts import FeatureCounts, PairCounts
from twotowers.identifiability.testing import Finding, together
from twotowers.intervals import interval
from twotowers.logs.counted import Counts
from twotowers.logs.features import KEYS, keys_of, rows_of
from twotowers.randomness import some, stream

HAUSMAN = "hausman"
ALARM = 0.05
"""The chance of a false alarm."""
MOST_ROWS = 20_000
"""Rows of counts that a tower is fitted to: whole queries, chosen at random."""


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

    @property
    def alarm(self) -> bool:
        """Whether the model is wrong, at the level `ALARM`."""
        return self.test.p <= ALARM


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
    """
    counts = log.counts
    curve = fit_conditional(counts, form="additive", reference=reference)
    bias = tower.bias - tower.bias[reference]
    other = np.arange(counts.factors) != reference
    used = other & (curve.estimate > 0) & (curve.reason == "") & np.isfinite(bias)
    with np.errstate(divide="ignore"):
        difference = np.where(used, bias - np.log(curve.estimate), np.nan)
    steps = tower.steps(log, reference)
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
        return Hausman(Finding(HAUSMAN, reason=why), table)
    largest = table.iloc[int(np.nanargmax(np.abs(difference)))]
    joint = together(HAUSMAN, steps[:, used], difference[used])
    names = ("difference", "error", "low", "high")
    value, spread, start, end = (float(largest[name]) for name in names)
    joint = replace(joint, value=value, error=spread, low=start, high=end, unit="log-ratio")
    return Hausman(joint, table)


@dataclass(frozen=True)
class TowerTests:
    """Hausman's test of a linear and of a deep tower, fitted to `pairs` query-document pairs.

    `missing` is the share of the impressions whose pair has no features, `width` their number.
    """

    linear: Hausman
    deep: Hausman
    pairs: int
    missing: float
    width: int

    @property
    def alarms(self) -> tuple[bool, bool]:
        """Whether the linear tower is wrong, and the deep one."""
        return self.linear.alarm, self.deep.alarm


def tower_tests(
    cells: Counts, counts: PairCounts, features: pd.DataFrame, *, reference: int
) -> TowerTests:
    """Test two-tower models of features, of `read_features`, on some queries of a log."""
    bias = list(counts.names.columns)
    rng = stream("diagnosis, towers")
    query, first = cells.groups(["query"])
    kept = some(np.diff(first, append=len(query)), MOST_ROWS, rng)
    rows = cells.where(kept[query]).count([*KEYS, *bias]).table().to_pandas()
    rows = rows.astype({"impressions": float, "clicks": float})
    factor = counts.names.assign(factor=np.arange(counts.factors))
    rows = rows.merge(factor, on=bias)
    numbers = list(features.columns[len(keys_of(features)) :])
    place = rows_of(features, rows)
    known = place >= 0
    rows = rows.join(features[numbers].iloc[place].set_axis(rows.index))
    shown = rows["impressions"].to_numpy(float)
    if not known.any():
        raise InputError(
            "no query-document pair of the log has features",
            field="features",
            expected=f"{' and '.join(keys_of(features))} as in the log",
        )
    rows = rows[known].sort_values([*KEYS, "factor"], kind="stable")
    log = FeatureCounts.of_arrays(
        pd.factorize(rows["query"])[0],
        rows.groupby(list(KEYS), sort=False).ngroup().to_numpy(),
        rows["factor"].to_numpy(),
        rows["impressions"].to_numpy(),
        rows["clicks"].to_numpy(),
        rows[numbers].to_numpy(float),
        factors=counts.factors,
    )
    linear, deep = (
        hausman(log, fit_tower(log, kind), reference=reference) for kind in ("linear", "deep")
    )
    missing = float(shown[~known].sum() / shown.sum())
    return TowerTests(linear, deep, len(log.features), missing, len(numbers))

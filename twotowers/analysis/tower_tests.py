"""A two-tower model of features, tested on a log: features join the counts of some queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.errors import InputError
from twotowers.fitting.feature_towers import fit_tower
from twotowers.fitting.pair_counts import FeatureCounts, PairCounts
from twotowers.identifiability.hausman import Hausman, hausman
from twotowers.logs.counted import Counts
from twotowers.logs.features import KEYS, keys_of, rows_of
from twotowers.randomness import some, stream

MOST_ROWS = 20_000
"""Rows of counts that a tower is fitted to: whole queries, chosen at random."""


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

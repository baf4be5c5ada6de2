"""A two-tower model of features, tested on a log: features join the counts of some queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.errors import InputError
from twotowers.fitting.pair_counts import PairCounts
from twotowers.identifiability.misfit import Misfit, misfit
from twotowers.logs.counted import Counts
from twotowers.logs.features import KEYS, keys_of, rows_of
from twotowers.randomness import some, stream

MOST_ROWS = 20_000
"""Rows of counts that a tower is fitted to: whole queries, chosen at random."""


@dataclass(frozen=True)
class TowerTests:
    """Tests of a linear and of a deep tower.

    Attributes:
        linear, deep: what the tests say.
        pairs: query-document pairs that the towers were fitted to.
        missing: share of the impressions whose pair has no features.
        scored: the column of the policy's scores, which is no feature; None without one.
        width: number of features.
    """

    linear: Misfit
    deep: Misfit
    pairs: int
    missing: float
    scored: str | None
    width: int

    @property
    def alarms(self) -> tuple[bool, bool]:
        """Whether a test alarms of the linear tower, and of the deep one."""
        return self.linear.alarm, self.deep.alarm


def tower_tests(
    cells: Counts, counts: PairCounts, features: pd.DataFrame, *, scored: bool, reference: int
) -> TowerTests:
    """Test two-tower models of features on some queries of a log.

    Args:
        cells: the log, counted.
        counts: its bias factors.
        features: of `twotowers.logs.features.read_features`.
        scored: whether the last column is the policy's score.
        reference: the factor that others are compared with.
    """
    bias = list(counts.names.columns)
    rng = stream("diagnosis, towers")
    query, first = cells.groups(["query"])
    kept = some(np.diff(first, append=len(query)), MOST_ROWS, rng)
    rows = cells.where(kept[query]).count([*KEYS, *bias]).table().to_pandas()
    rows = rows.astype({"impressions": float, "clicks": float})
    factor = counts.names.assign(factor=np.arange(counts.factors))
    rows = rows.merge(factor, on=bias)
    numbers = list(features.columns[len(keys_of(features)) :])
    found = rows_of(features, rows)
    known = found >= 0
    rows = rows.join(features[numbers].iloc[found].set_axis(rows.index))
    shown = rows["impressions"].to_numpy(float)
    if not known.any():
        raise InputError(
            "no query-document pair of the log has features",
            field="features",
            expected=f"{' and '.join(keys_of(features))} as in the log",
        )
    rows = rows[known].sort_values([*KEYS, "factor"], kind="stable")
    pair = rows.groupby(list(KEYS), sort=False).ngroup().to_numpy()
    values = rows[numbers].to_numpy(float)
    score = values[:, -1] if scored else None
    values = values[:, :-1] if scored else values
    given = (
        pd.factorize(rows["query"])[0],
        pair,
        rows["factor"].to_numpy(),
        rows["impressions"].to_numpy(),
        rows["clicks"].to_numpy(),
        values,
    )
    how = {"score": score, "factors": counts.factors, "reference": reference}
    linear = misfit(*given, tower="linear", **how)
    deep = misfit(*given, tower="deep", with_overlap=False, **how)
    missing = float(shown[~known].sum() / shown.sum())
    name = numbers[-1] if scored else None
    return TowerTests(linear, deep, int(pair.max()) + 1, missing, name, values.shape[1])

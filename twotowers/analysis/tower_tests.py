"""A two-tower model of features, tested on a log: features join the counts of some queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, read_batches
from twotowers.fitting.pair_counts import PairCounts
from twotowers.identifiability.misfit import Misfit, misfit
from twotowers.logs.counted import Counts
from twotowers.logs.frames import source_of
from twotowers.randomness import some, stream

KEYS = ("query", "document")
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


def read_features(given: object, policy: str | None) -> pd.DataFrame:
    """Features of query-document pairs: columns query, document, features, and `policy` last.

    Raises:
        InputError: it is no table, a column is missing or no number, or a pair is there twice.
    """
    source, _ = source_of(given)
    files = files_of(source)
    # What pandas wrote of its index is no feature.
    names = [name for name in column_names(files[0]) if not name.startswith("__index_level_")]
    for name in (*KEYS, *([policy] if policy else [])):
        if name not in names:
            raise InputError(
                "no such column", path=source, field=name, expected=nearest(name, names)
            )
    parts = [
        batch.to_pandas(ignore_metadata=True)
        for each in files
        for batch in read_batches(each, names)
    ]
    table = pd.concat(parts, ignore_index=True)
    numbers = [name for name in names if name not in (*KEYS, policy)]
    if not numbers:
        beside = f" beside {policy!r}, the policy's score" if policy else ""
        expected = "a column per feature"
        raise InputError(f"there are no features{beside}", path=source, expected=expected)
    for name in [*numbers, *([policy] if policy else [])]:
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(float)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise InputError(
                f"row {wrong[0] + 1}: {table[name].iloc[wrong[0]]!s:.40} was found",
                path=source,
                field=name,
                expected="finite numbers",
            )
        table[name] = values
    twice = table.duplicated(list(KEYS))
    if twice.any():
        raise InputError(
            f"row {int(np.flatnonzero(twice)[0]) + 1}: a query and document that came before",
            path=source,
            field="document",
            expected="a row per query-document pair",
        )
    return table[[*KEYS, *numbers, *([policy] if policy else [])]]


def tower_tests(
    cells: Counts, counts: PairCounts, features: pd.DataFrame, *, scored: bool, reference: int
) -> TowerTests:
    """Test two-tower models of features on some queries of a log.

    Args:
        cells: the log, counted.
        counts: its bias factors.
        features: of `read_features`.
        scored: whether the last column is the policy's score.
        reference: the factor that others are compared with.

    Raises:
        InputError: no pair of the log has features.
    """
    bias = list(counts.names.columns)
    rng = stream("diagnosis, towers")
    query, first = cells.groups(["query"])
    kept = some(np.diff(first, append=len(query)), MOST_ROWS, rng)
    rows = cells.where(kept[query]).count([*KEYS, *bias]).table().to_pandas()
    rows = rows.astype({"impressions": float, "clicks": float})
    for name in KEYS:  # Ids are text if either side has text.
        if rows[name].dtype != features[name].dtype:
            rows, features = (
                each.assign(**{name: each[name].astype(str)}) for each in (rows, features)
            )
    factor = counts.names.assign(factor=np.arange(counts.factors))
    rows = rows.merge(factor, on=bias).merge(features, on=list(KEYS), how="left")
    numbers = list(features.columns[2:])
    known = rows[numbers[0]].notna().to_numpy()
    shown = rows["impressions"].to_numpy(float)
    if not known.any():
        raise InputError(
            "no query-document pair of the log has features",
            field="features",
            expected="query and document as in the log",
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

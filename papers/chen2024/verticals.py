"""Bias factors of a log with vertical types, and the components that they form (Theorem 1)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from twotowers.errors import InputError, nearest
from twotowers.identifiability.graph import factor_components

FACTORS = ("v1", "v2", "position")


def components(log: pa.Table, factors: Sequence[str] = FACTORS) -> tuple[int, int]:
    """How many bias factors a log has, and how many connected components they form.

    Documents are told apart within a query. One component means that the log identifies relevance
    up to a scale (Chen et al. 2024, Theorem 1; the figures of Table 5). The log is as `count_cells`
    gives it; columns that are no `factors` are ignored.
    """
    known = [name for name in FACTORS if name in log.column_names]
    for name in factors:
        if name not in known:
            raise InputError(
                f"{name!r} is no bias factor", field=name, expected=nearest(name, known)
            )
    table = log.to_pandas()
    document, factor = (
        table.groupby(columns, observed=True, dropna=False).ngroup().to_numpy()
        for columns in (["query", "document"], list(factors))
    )
    count = int(factor.max(initial=-1)) + 1
    return count, int(factor_components(document, factor, factors=count).max(initial=-1)) + 1

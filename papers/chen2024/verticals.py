"""Bias factors of a log with vertical types, and the components that they form (Theorem 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError, nearest
from twotowers.identifiability.graph import factor_components

FACTORS = ("v1", "v2", "position")


def components(log: pa.Table, factors: Sequence[str] = FACTORS) -> tuple[int, int]:
    """How many bias factors a log has, and how many connected components they form.

    Documents are told apart within a query. One component means that the log identifies
    relevance up to a scale (Chen et al. 2024, Theorem 1; the figures of Table 5).

    Args:
        log: as `count_cells` gives it.
        factors: the columns that make up a bias factor; those left out are ignored.

    Returns:
        The number of different bias factors in the log, and of their components.

    Raises:
        InputError: a column is not in the log.
    """
    known = [name for name in FACTORS if name in log.column_names]
    for name in factors:
        if name not in known:
            raise InputError(
                f"{name!r} is no bias factor", field=name, expected=nearest(name, known)
            )
    document = _numbered([_codes(log, name) for name in ("query", "document")])
    factor = _numbered([_codes(log, name) for name in factors])
    count = int(factor.max(initial=-1)) + 1
    return count, len(np.unique(factor_components(document, factor, factors=count)))


def _codes(log: pa.Table, name: str) -> np.ndarray:
    column = log[name].combine_chunks()
    return (column.indices if pa.types.is_dictionary(column.type) else column).to_numpy()


def _numbered(columns: list[np.ndarray]) -> np.ndarray:
    """[rows] int64: equal rows of the columns get equal numbers, counted from 0."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + code, return_inverse=True)[1]
    return number

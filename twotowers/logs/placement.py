"""How freely the logging policy places documents: the entropy of position given document.

Of each pair d with n_dk impressions at position k, N_d in all,

* the entropy H_d = -sum_k p_dk log2 p_dk in bits, p_dk = n_dk / N_d, with the correction of Miller
  and Madow (1955), (positions - 1) / (2 N_d ln 2), since few impressions show few positions;
* the chance that two impressions of d are at the same position,
  sum_k n_dk (n_dk - 1) / (N_d (N_d - 1)), which is unbiased however few they are.

Both are means over impressions of pairs that were shown at least twice, and so ratios of sums over
queries: their errors are clustered by query (Cochran 1977, Section 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from twotowers.logs.warehouse import MEMORY, database, text

PER_QUERY = """
WITH placed AS (
    SELECT query, document, position, sum(impressions)::DOUBLE AS n
    FROM read_parquet({path}) WHERE impressions > 0 GROUP BY ALL
), pairs AS (
    SELECT query, sum(n) AS shown, round(log2(sum(n)) - sum(n * log2(n)) / sum(n), 12)
            + (count(*) - 1) / (2 * sum(n) * ln(2)) AS entropy,
        sum(n * (n - 1)) / (sum(n) * (sum(n) - 1)) AS same
    FROM placed GROUP BY query, document HAVING sum(n) > 1
)
SELECT sum(shown) AS shown, sum(shown * entropy) AS entropy, sum(shown * same) AS same
FROM pairs GROUP BY query ORDER BY query
"""
POSITIONS = """
SELECT position, sum(impressions)::DOUBLE AS n FROM read_parquet({path}) GROUP BY position
"""


@dataclass(frozen=True)
class Mean:
    """A mean with its 95 % interval, by Student's t over queries; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Placement:
    """How freely documents are placed.

    Attributes:
        entropy: of the position, given the document, in bits.
        same: chance that a document is at the same position again.
        overall: entropy of the position, whatever the document, in bits.
        shown: impressions of pairs that were shown at least twice, which the means are over.
    """

    entropy: Mean
    same: Mean
    overall: float
    shown: float


def placement(cells: str | Path) -> Placement:
    """The entropy of position given document.

    Args:
        cells: a cells file (`twotowers.logs.warehouse`).

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> cells = {"query": [1, 1, 2, 2], "document": [1, 1, 2, 2], "position": [1, 2, 1, 2],
        ...          "impressions": [500] * 4, "clicks": [0] * 4}
        >>> pq.write_table(pa.table(cells), "cells.parquet")
        >>> found = placement("cells.parquet")
        >>> round(found.entropy.value, 3), round(found.same.value, 3), found.overall
        (1.001, 0.499, 1.0)
    """
    path = text(cells)
    with database(cells, MEMORY, None) as connection:
        found = connection.execute(PER_QUERY.format(path=path)).fetchnumpy()
        n = connection.execute(POSITIONS.format(path=path)).fetchnumpy()["n"]
    shown = np.asarray(found["shown"], float)
    entropy, same = (ratio(np.asarray(found[name], float), shown) for name in ("entropy", "same"))
    share = np.asarray(n, float)[np.asarray(n) > 0] / np.sum(n)
    return Placement(entropy, same, float(share @ np.log2(1 / share)), float(shown.sum()))


def ratio(sums: np.ndarray, sizes: np.ndarray) -> Mean:
    """A ratio of sums over queries, with its interval."""
    queries = len(sums)
    if not sizes.sum():
        return Mean(np.nan, np.nan, np.nan)
    value = float(sums.sum() / sizes.sum())
    if queries < 2:
        return Mean(value, np.nan, np.nan)
    spread = ((sums - value * sizes) ** 2).sum() * queries / (queries - 1)
    half = float(stdtrit(queries - 1, 0.975) * np.sqrt(spread) / sizes.sum())
    return Mean(value, value - half, value + half)

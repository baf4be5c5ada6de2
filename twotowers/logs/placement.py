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

import numpy as np

from twotowers.intervals import Tested, mean
from twotowers.logs.counted import Counts


@dataclass(frozen=True)
class Placement:
    """How freely documents are placed: means over the impressions of pairs shown twice or more.

    Attributes:
        entropy: of the position, given the document, in bits.
        same: chance that a document is at the same position again.
        overall: entropy of the position, whatever the document, in bits.
        shown: those impressions.
    """

    entropy: Tested
    same: Tested
    overall: float
    shown: float


def placement(counts: Counts) -> Placement:
    """The entropy of position given document.

    Example:
        >>> import pyarrow as pa
        >>> cells = {"query": [1, 1, 2, 2], "document": [1, 1, 2, 2], "position": [1, 2, 1, 2],
        ...          "impressions": [500] * 4, "clicks": [0] * 4}
        >>> found = placement(Counts.of_batches([pa.record_batch(cells)]))
        >>> round(found.entropy.value, 3), round(found.same.value, 3), found.overall
        (1.001, 0.499, 1.0)
    """
    counts = counts.count(["query", "document", "position"])
    pair, first = counts.groups(["query", "document"])
    n = counts.impressions.astype(float)
    shown, logs, same, places = (
        np.bincount(pair, each) for each in (n, n * np.log2(n), n * (n - 1), np.ones(len(n)))
    )
    again = shown > 1
    shown, logs, same, places = (each[again] for each in (shown, logs, same, places))
    entropy = np.round(np.log2(shown) - logs / shown, 12) + (places - 1) / (2 * shown * np.log(2))
    _, query = np.unique(counts.columns["query"][first][again], return_inverse=True)
    total = np.bincount(query, shown)
    means = (
        mean(np.bincount(query, shown * each), total)
        for each in (entropy, same / (shown * (shown - 1)))
    )
    share = np.bincount(counts.columns["position"], n)
    share = share[share > 0] / n.sum()
    return Placement(*means, float(share @ np.log2(1 / share)), float(total.sum()))

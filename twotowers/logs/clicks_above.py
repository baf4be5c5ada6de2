"""Does a click depend on clicks above it? A test that needs no click model.

Under a position-based model the clicks of a page are independent, given the pairs and positions. So
a pair that is shown at one position again and again is clicked as often on pages with a click above
it as on others. Each pair and position is a 2 x 2 table: clicked or not, with or without a click
above. The odds ratio of Mantel and Haenszel (1959) over all of these tables,

    OR = sum_s a_s d_s / n_s  /  sum_s b_s c_s / n_s,

is consistent however small each table is. Below 1, a click above makes others rarer, as in cascade
models: users stop, satisfied. Above 1, clicks come together, as if users differed. The error of its
logarithm is clustered by query: queries add r_q and s_q to the two sums, and

    Var ln OR = G / (G - 1) sum_q (r_q / sum r - s_q / sum s)^2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from twotowers.intervals import Tested, interval
from twotowers.logs.log import Log

ENOUGH = 10
"""Queries, below which there is no interval."""


def clicks_above(log: Log) -> Tested:
    """The odds ratio of a click, with and without a click above it, and the test that it is 1.

    Example:
        >>> import pyarrow as pa
        >>> clicks = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 0], [0, 1]] * 10, bool)
        >>> pages = {"query": [k // 6 for k in range(60)], "documents": [[3, 1]] * 60,
        ...          "clicks": clicks.tolist()}
        >>> round(clicks_above(Log.of_batches([pa.record_batch(pages)])).value, 2)
        0.25
    """
    stratum = ["query", "document", "position"]
    counts = log.count([*stratum, "above"], above=(2, lambda block: block.last_click > 0))
    counts = counts.where(counts.columns["position"] > 0)
    number, first = counts.groups(stratum)
    above = counts.columns["above"] > 0
    clicked, missed = counts.clicks, counts.impressions - counts.clicks
    a, b, c, d = (
        np.bincount(number, np.where(where, each, 0), len(first))
        for where in (above, ~above)
        for each in (clicked, missed)
    )
    telling = (a + c > 0) & (b + d > 0) & (a + b > 0) & (c + d > 0)
    a, b, c, d = (each[telling] for each in (a, b, c, d))
    n = a + b + c + d
    _, query = np.unique(counts.columns["query"][first][telling], return_inverse=True)
    r, s = (np.bincount(query, each / n) for each in (a * d, b * c))
    queries = len(r)
    if not (r.sum() > 0 and s.sum() > 0):
        reason = "no pair was shown at one position with and without a click above, and clicked"
        return Tested(reason=reason)
    ratio = float(r.sum() / s.sum())
    if queries < ENOUGH:
        reason = f"only {queries} queries tell, fewer than {ENOUGH}"
        return Tested(ratio, reason=reason)
    each = r / r.sum() - s / s.sum()
    error = float(np.sqrt((each**2).sum() * queries / (queries - 1)))
    p = float(2 * stdtr(queries - 1, -abs(np.log(ratio)) / error)) if error else 1.0
    low, high = map(float, np.exp(interval(np.log(ratio), error, queries - 1)))
    return Tested(ratio, error, low, high, p)

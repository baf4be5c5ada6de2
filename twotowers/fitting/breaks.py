"""Positions whose examination breaks with that of their neighbours: an advert, a module, a layout.

Users examine less further down, and their curve may bend or fall at a fold, but one position that
lies off its neighbours on both sides is not theirs. With y = ln e and x = ln position, let r_k be
y_k less what the line through both neighbours has at x_k. An odd position k gives r_k, and about
half of it with the other sign at k - 1 and at k + 1; a bend gives r_k alone, and a fall two
neighbours with opposite signs. Position k is odd if |r_k| is larger than chance allows, all
positions together, and both neighbours have the other sign. Of two neighbours that rise by more
than chance allows, one is odd, too.

    >>> names = pd.DataFrame({"position": range(1, 9)})
    >>> log_estimate = -np.log(np.arange(1, 9)) - 0.8 * (np.arange(1, 9) == 4)
    >>> odd_positions(names, log_estimate, 1e-4 * np.eye(8), np.full(8, 50.0)).tolist()
    [3]
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from twotowers.intervals import quantile

LEVEL, BOTH = 0.01, 0.05
"""Chance of a false alarm at any position; and that of one sign of each neighbour."""
LEAST = 0.1
"""Logarithms of examination that differ by less are alike in practice."""


def odd_positions(
    names: pd.DataFrame, log_estimate: np.ndarray, covariance: np.ndarray, freedom: np.ndarray
) -> np.ndarray:
    """Numbers of the bias factors whose position is odd among those with the same other features.

    Args:
        names: [K] the features of each factor; with `position`, whole numbers from 1.
        log_estimate: [K] logarithms of examination, NaN where there is none.
        covariance: [K, K] of them.
        freedom: [K] degrees of freedom of their errors.
    """
    found: set[int] = set()
    known = np.isfinite(log_estimate)
    others = [name for name in names if name != "position"]
    groups = names.groupby(others).indices.values() if others else [np.arange(len(names))]
    tests = max(2 * known.sum(), 1)
    for group in groups:
        group = group[known[group]]
        group = group[np.argsort(names["position"].to_numpy()[group], kind="stable")]
        x, y = np.log(names["position"].to_numpy(float)[group]), log_estimate[group]
        size = len(group)
        if size < 3:
            continue
        spread, free = covariance[np.ix_(group, group)], freedom[group].min()
        sure, sign = quantile(free, level=1 - LEVEL / tests), quantile(free, level=1 - 2 * BOTH)
        middle = np.arange(1, size - 1)
        right = (x[middle] - x[middle - 1]) / (x[middle + 1] - x[middle - 1])
        off = np.zeros((size, size))
        off[middle, middle], off[middle, middle + 1] = 1, -right
        off[middle, middle - 1] = right - 1
        rise = np.eye(size, k=1) - np.eye(size)
        rise[-1] = 0
        (r, error), (up, up_error) = (
            (each @ y, np.sqrt(np.maximum(((each @ spread) * each).sum(1), 1e-300)))
            for each in (off, rise)
        )
        t = r / error
        for k in middle[1:-1]:
            near = -t[[k - 1, k + 1]] * np.sign(r[k])
            if abs(r[k]) > max(sure * error[k], LEAST) and (near > sign).all():
                found.add(int(group[k]))
        for k in np.flatnonzero((up > np.maximum(sure * up_error, LEAST))[:-1]):
            # The lower one is odd if those around both are as high as the higher one.
            around = y[k - 1] if k else y[min(k + 2, size - 1)]
            high = around >= y[k + 1] if k else around > y[k]
            found.add(int(group[k] if high else group[k + 1]))
    return np.array(sorted(found), int)

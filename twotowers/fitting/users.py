"""Errors of a conditional curve that are clustered by user as well as by query.

Users differ in how far they look. Then all clicks of a user depend on each other, over all queries,
and errors by query alone are too small. With scores s by query, by user, and by both together, the
two-way sandwich is (Cameron, Gelbach and Miller 2011)

    V = Q (sum s_q s_q' + sum s_u s_u' - sum s_qu s_qu') Q.

With the residuals r_k = c_k - a_d n_k e_k of a user's displays of pair d, where a_d is the pair's
clicks by its examined displays, the user's share of the score of factor k is the sum over pairs of

    r_k - p_dk sum_l r_l,    p_dk = n_dk e_k / sum_l n_dl e_l,

since the user's clicks move a_d, too.

The curve is a mean over users, by their displays.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import coo_array

from twotowers.fitting.curves import Curve, as_curve, effective_clusters, inverse_root


def active_users(user: ArrayLike, displays: ArrayLike | None = None) -> float:
    """Effective number of users by their displays n: (sum n)^2 / sum n^2.

    Example:
        >>> round(active_users([0, 1, 2], [100, 100, 1]), 2)
        2.02
    """
    numbers = np.unique(np.asarray(user), return_inverse=True)[1]
    shown = np.bincount(numbers, displays)
    return float(shown.sum() ** 2 / (shown**2).sum())


def query_and_user(query: np.ndarray, user: np.ndarray) -> np.ndarray:
    """[rows] a number from 0 for each query and user that occur together."""
    users = int(user.max(initial=-1)) + 1
    return np.unique(query.astype(np.int64) * users + user, return_inverse=True)[1]


def cluster_by_user(curve: Curve, rows: pd.DataFrame, *, level: float = 0.95) -> Curve:
    """The curve with errors that are clustered by query and by user.

    Args:
        curve: the conditional curve of the product form.
        rows: counts by pair, factor and user, with the columns pair, factor, query, user (numbers),
            impressions and clicks.
        level: of the intervals.
    """
    known = curve.estimate > 0
    rows = rows[known[rows["factor"].to_numpy()]]
    pair = np.unique(rows["pair"], return_inverse=True)[1]
    factor, clicks = rows["factor"].to_numpy(), rows["clicks"].to_numpy(float)
    examined = rows["impressions"].to_numpy() * curve.estimate[factor]
    attraction = np.bincount(pair, clicks) / np.maximum(np.bincount(pair, examined), 1e-300)
    residual = clicks - attraction[pair] * examined
    share = coo_array((examined, (pair, factor)), shape=(len(attraction), len(known))).tocsr()
    share = share.multiply(1 / np.maximum(share.sum(1), 1e-300)[:, None]).tocsr()
    root, _ = inverse_root(curve.information, curve.reference)
    bread = np.where(known[:, None] & known, root @ root.T, 0)
    query, user = (np.unique(rows[each], return_inverse=True)[1] for each in ("query", "user"))

    def steps(cluster: np.ndarray) -> np.ndarray:
        size = cluster.max(initial=-1) + 1
        own = coo_array((residual, (cluster, factor)), shape=(size, len(known))).tocsr()
        moved = coo_array((residual, (cluster, pair)), shape=(size, len(attraction))).tocsr()
        return (own - moved @ share) @ bread.T

    by_user, by_both = steps(user), steps(query_and_user(query, user))
    users = len(by_user)
    more = by_user.T @ by_user * users / max(users - 1, 1) - by_both.T @ by_both
    more += np.diag(np.maximum(-np.diag(more), 0))
    return as_curve(
        curve.names,
        np.where(known, np.log(np.where(known, curve.estimate, 1)), np.nan),
        curve.covariance + more,
        information=curve.information,
        resistance=4 / curve.swaps,
        queries=curve.queries,
        users=(effective_clusters(by_user), active_users(rows["user"], rows["impressions"])),
        reason=np.where(known, "", curve.reason),
        reference=curve.reference,
        level=level,
    )

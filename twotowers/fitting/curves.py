"""Propensity curves: how sure ratios of examination are, clustered by query.

Every estimate of the family (`conditional`, `harvesting`) solves score(theta) = 0, where theta are
logarithms of examination, and the score is a sum over queries. Its information is

    L = sum over groups of diag(v) - v v' / sum(v),

the Laplacian of a graph between bias factors. A group is a query-document pair, and v are the
clicks expected of it under each factor. With Q = L+, the pseudo-inverse, the log-ratio of two
factors has the variance (e_k - e_1)' Q (e_k - e_1) by the information: the resistance between them.

Clicks of one query may depend on each other, and a click is no Poisson count. So the default error
is the sandwich Q (sum of s_g s_g') Q of the scores of queries. Few queries fit themselves, so their
scores are too small. The jackknife (CR3 of Bell and McCaffrey 2002) multiplies each by (I - L_g
Q)^-1, where L_g is the query's share of L. Degrees of freedom of Student's t are the effective
number of queries, (sum of v_g)^2 / sum of v_g^2, where v_g is the variance that query g contributes
to the log-ratio by the information.

A direction that one query alone tells is one that it fits exactly: its score is 0 there, and says
nothing of the error. Such a direction has its variance by the information, and ratios that rest on
it are doubtful.

Users differ in how far they look. Then all clicks of a user depend on each other, over all queries,
and errors by query alone are too small (`cluster_by_user`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array

from twotowers.intervals import effective_clusters, interval

LEVERAGE = 0.01
"""Queries with less of the information keep their scores: the error changes by less than this."""
ENTRIES = 4_000_000
"""Of a dense block in memory."""
BLOCK = 64
"""Factors that are eliminated together."""
ALIKE = 1e-9
"""Variance, as a share of that by the information, below which queries do not differ."""
ENOUGH_SWAPS, ENOUGH_QUERIES, ENOUGH_USERS = 20.0, 4.0, 10.0
"""Below these an interval is given with a reason to doubt it."""
ALONE = "doubtful: one query alone links it to the reference, so part of its error is by clicks"


@dataclass(frozen=True)
class Blocks:
    """The information as a sum over groups of diag(v) - v v' / sum(v).

    `weight` [groups, K] has v >= 0, sparse; `cluster` [groups] is from 0.
    """

    weight: csr_array
    cluster: np.ndarray

    @property
    def clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    def laplacian(self) -> np.ndarray:
        """[K, K] the information L. Its diagonal is the sum of the weights beside it, so that the
        small weight of an uneven group does not cancel."""
        total = np.maximum(self.weight.sum(1), 1e-300)
        rooted = self.weight.multiply(1 / np.sqrt(total)[:, None]).tocsr()
        return laplacian_of((rooted.T @ rooted).toarray())

    def _deviations(self, groups: slice | np.ndarray, directions: np.ndarray) -> np.ndarray:
        """[rows of groups, J] sqrt(v) times what a direction [K, J] is from its group's mean."""
        weight = self.weight[groups]
        mean = (weight @ directions) / np.maximum(weight.sum(1), 1e-300)[:, None]
        group = np.repeat(np.arange(len(mean)), np.diff(weight.indptr))
        return np.sqrt(weight.data)[:, None] * (directions[weight.indices] - mean[group])

    def spread(self, directions: np.ndarray) -> np.ndarray:
        """[clusters, J] m' L_g m of each cluster g, for directions m [K, J]."""
        result = np.zeros((self.clusters, directions.shape[1]))
        cluster = np.repeat(self.cluster, np.diff(self.weight.indptr))
        step = max(ENTRIES // max(directions.shape[1], 1), 1)
        for start in range(0, len(self.cluster), step):
            squares = self._deviations(slice(start, start + step), directions) ** 2
            rows = slice(*self.weight.indptr[[start, min(start + step, len(self.cluster))]])
            members = csr_array(
                (np.ones(len(squares)), cluster[rows], np.arange(len(squares) + 1)),
                shape=(len(squares), self.clusters),
            )
            result += members.T @ squares
        return result

    def effective(self, directions: np.ndarray) -> np.ndarray:
        """[J] effective number of clusters behind each direction [K, J]."""
        spread = self.spread(directions)
        with np.errstate(invalid="ignore", divide="ignore"):
            return spread.sum(0) ** 2 / (spread**2).sum(0)

    def shares(self, clusters: np.ndarray, root: np.ndarray) -> np.ndarray:
        """[clusters, J, J] root' L_g root of some clusters g, for a root [K, J]."""
        result = np.zeros((len(clusters), root.shape[1], root.shape[1]))
        place = np.full(self.clusters, -1)
        place[clusters] = np.arange(len(clusters))
        number, rows = place[self.cluster], np.diff(self.weight.indptr)
        chosen = np.argsort(number, kind="stable")[(number < 0).sum() :]
        pieces = rows[chosen].sum() * root.shape[1] // ENTRIES + 1
        for groups in np.array_split(chosen, pieces):
            each = self._deviations(groups, root)
            at = np.repeat(number[groups], rows[groups])
            for own in np.split(np.arange(len(at)), np.flatnonzero(np.diff(at)) + 1):
                if len(own):
                    result[at[own[0]]] += each[own].T @ each[own]
        return result


def laplacian_of(weight: np.ndarray) -> np.ndarray:
    """[K, K] the Laplacian of symmetric weights between factors; their diagonal is ignored."""
    links = np.maximum(weight, 0)
    np.fill_diagonal(links, 0)
    return np.diag(links.sum(1)) - links


def inverse_root(laplacian: np.ndarray, ground: int) -> tuple[np.ndarray, np.ndarray]:
    """[K, J] root, 0 at factor `ground`, with root root' an inverse of L there; and [J, K] its own
    inverse.

    Factors are eliminated one after the other, the ground last, as Grassmann, Taksar and Heyman
    (1985) do: the weights between those that are left add up, and nothing is subtracted. So every
    entry has all its digits, however far apart the weights of links are (O'Cinneide 1993). A factor
    that nothing links to the ground has a row of variances relative to another ground of its own.
    """
    factors = len(laplacian)
    order = np.append(np.delete(np.arange(factors), ground), ground)
    weight = -laplacian[np.ix_(order, order)]
    pivot, upper = np.zeros(factors), np.eye(factors)
    for start in range(0, factors, BLOCK):
        end = min(start + BLOCK, factors)
        for k in range(start, end):
            row = weight[k, k + 1 :]
            pivot[k] = row.sum()
            if pivot[k] > 0:
                upper[k, k + 1 :] = -row / pivot[k]
                weight[k + 1 : end, k + 1 :] -= np.outer(row[: end - k - 1], upper[k, k + 1 :])
        weight[end:, end:] -= weight[start:end, end:].T @ upper[start:end, end:]
    kept = pivot > 0
    # The inverse of U with L = U' D U: entries are sums of products that are not negative.
    columns = np.eye(factors)
    for start in reversed(range(0, factors, BLOCK)):
        end = min(start + BLOCK, factors)
        columns[start:end, end:] -= upper[start:end, end:] @ columns[end:, end:]
        for k in reversed(range(start, end - 1)):
            columns[k, k + 1 :] -= upper[k, k + 1 : end] @ columns[k + 1 : end, k + 1 :]
    columns = columns[:, kept]
    root, inverse = np.zeros((factors, kept.sum())), np.zeros((kept.sum(), factors))
    root[order] = columns / np.sqrt(pivot[kept])
    inverse[:, order] = upper[kept] * np.sqrt(pivot[kept])[:, None]
    return root, inverse


def influences(
    blocks: Blocks, scores: csr_array, ground: int, *, information: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """[clusters, K] what each cluster moves the log-examinations by; and [J, K] steps, by the
    information, in the directions that a cluster alone tells, in which its own step is 0.

    The covariance is the sum of the squares of both. `scores` [clusters, K] are sparse; steps are
    relative to the factor `ground`; `information` [K, K] is given if it is not exactly that of
    `blocks`.
    """
    root, inverse = inverse_root(blocks.laplacian(), ground)
    adjusted = scores @ root
    high = np.flatnonzero(blocks.spread(root).sum(1) > LEVERAGE)  # by trace(L_g Q)
    value, vector = np.linalg.eigh(blocks.shares(high, root))
    left = 1 - value
    alone = left <= 1e-6
    factor = np.where(alone, 0, 1 / np.maximum(left, 1e-6))
    turned = np.einsum("gij,gi->gj", vector, adjusted[high])
    adjusted[high] = np.einsum("gij,gj->gi", vector, factor * turned)
    outer = root
    if information is not None:
        bread, _ = inverse_root(information, ground)
        outer = bread @ (bread.T @ inverse.T)
    return adjusted @ outer.T, vector.swapaxes(1, 2)[alone] @ outer.T


@dataclass(frozen=True)
class Curve:
    """Estimates relative to a reference factor, and how sure they are.

    Attributes:
        names: [K] a row per bias factor.
        estimate: [K] ratio to the reference; NaN where the log does not tell.
        error: [K] standard error of its logarithm; 0 at the reference. Of too few effective
            queries, it is at least that by the information.
        low, high: [K] interval; NaN where there is none, 1 at the reference.
        swaps: [K] effective number of swaps: clicks on documents that are shown under both factors
            in turn, and are clicked as often under both, which would give the same error by the
            information.
        queries: [K] effective number of queries behind the error.
        reason: [K] why there is no estimate, or why to doubt it; '' if neither.
        covariance: [K, K] of the logarithms relative to the reference. Its diagonal is the square
            of `error`.
        information: [K, K] Laplacian, in clicks.
        reference: number of the reference factor.
    """

    names: pd.DataFrame
    estimate: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    swaps: np.ndarray
    queries: np.ndarray
    reason: np.ndarray
    covariance: np.ndarray
    information: np.ndarray
    reference: int

    @property
    def labels(self) -> list[str]:
        """[K] the bias factors in words."""
        return [", ".join(map(str, row)) for row in self.names.itertuples(index=False)]

    def frame(self) -> pd.DataFrame:
        """A row per bias factor."""
        columns = ("estimate", "error", "low", "high", "swaps", "queries", "reason")
        return self.names.assign(**{name: getattr(self, name) for name in columns})


def number_of(number: float) -> str:
    """An effective number in words, rounded down, so that it stays below what it is below."""
    return f"{np.floor(number):,.0f}" if number >= 10 else f"{np.floor(10 * number) / 10:g}"


def contrasts(factors: int, reference: int) -> np.ndarray:
    """[K, K] matrix that subtracts the reference: row k is e_k - e_reference."""
    matrix = np.eye(factors)
    matrix[:, reference] -= 1
    return matrix


def as_curve(
    names: pd.DataFrame,
    log_estimate: np.ndarray,
    covariance: np.ndarray,
    *,
    information: np.ndarray,
    resistance: np.ndarray,
    queries: np.ndarray,
    reason: np.ndarray,
    reference: int,
    users: tuple[np.ndarray, float] | None = None,
) -> Curve:
    """The curve of log-estimates [K] that are relative to the reference, with t intervals.

    `covariance` [K, K] is theirs; `resistance` [K] the variance of each by the information;
    `queries` [K] the effective number of queries, which are degrees of freedom; `reason` [K] is as
    far as known. If errors are clustered by user, too, `users` has [K] the effective number of
    users behind each error, degrees of freedom as well; and that by their displays, which makes a
    doubt, since the first is small or large by chance as the error is.
    """
    known = np.isfinite(log_estimate) & (reason == "")
    other = np.arange(len(names)) != reference
    log_estimate = np.where(known, log_estimate, np.nan)
    # Queries whose scores are all 0 say nothing of the error.
    queries = np.nan_to_num(queries, nan=0, posinf=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        swaps = np.where(known & other, 4 / resistance, np.nan)
    behind, active = (np.full(len(names), np.inf), np.inf) if users is None else users
    behind = np.nan_to_num(behind, nan=0, posinf=np.inf)
    few = (swaps < ENOUGH_SWAPS) | (queries < ENOUGH_QUERIES) | (active < ENOUGH_USERS)
    doubt = known & other & few
    # A single query fits itself, so that its score is 0 and says nothing of its error. So it is
    # where no query differs from the others, as in counts that are no sample.
    alike = known & other & (np.diag(covariance) < ALIKE * resistance)
    alone = doubt & (queries < ENOUGH_QUERIES) | alike
    lacking = np.where(alone, np.maximum(resistance - np.diag(covariance), 0), 0)
    covariance = covariance + np.diag(lacking)
    error = np.where(known, np.sqrt(np.maximum(np.diag(covariance), 0)), np.nan)
    freedom = np.maximum(np.minimum(queries, behind), 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ends = interval(log_estimate, error, freedom)
        low, high = np.exp(ends)
    reason = reason.copy()
    reason[alike] = "doubtful: queries do not differ, so its error is by clicks"
    for k in np.flatnonzero(doubt):
        lacks = (
            f"{number_of(number)} effective {what}, fewer than {enough:g}"
            for number, what, enough in (
                (swaps[k], "swaps", ENOUGH_SWAPS),
                (queries[k], "queries", ENOUGH_QUERIES),
                (active, "users", ENOUGH_USERS),
            )
            if number < enough
        )
        reason[k] = f"doubtful: {'; '.join(lacks)}"
    return Curve(
        names,
        np.exp(log_estimate),
        error,
        low,
        high,
        swaps,
        np.where(known & other, queries, np.nan),
        reason,
        covariance,
        information,
        reference,
    )


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


def cluster_by_user(curve: Curve, rows: pd.DataFrame) -> Curve:
    """The curve with errors that are clustered by query and by user.

    With scores s by query, by user, and by both together, the two-way sandwich is (Cameron, Gelbach
    and Miller 2011)

        V = Q (sum s_q s_q' + sum s_u s_u' - sum s_qu s_qu') Q.

    With the residuals r_k = c_k - a_d n_k e_k of a user's displays of pair d, where a_d is the
    pair's clicks by its examined displays, the user's share of the score of factor k is the sum
    over pairs of

        r_k - p_dk sum_l r_l,    p_dk = n_dk e_k / sum_l n_dl e_l,

    since the user's clicks move a_d, too. The curve, of the product form, is a mean over users, by
    their displays. `rows` has the numbers pair, factor, query and user, with impressions and
    clicks.
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
    )

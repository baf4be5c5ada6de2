"""Examination from displays that follow each other: for rankers that learn from clicks.

The conditional estimate (`twotowers.fitting.conditional`) takes positions as given. A ranker with
a click-rate feature moves a document up after a click, so that positions depend on clicks before
them, and that estimate is biased. Here positions may depend on the past, but not on the future
(sequential exogeneity). With click chance a_d e_k, two neighbouring displays t and t + 1 of a pair
at the factors j and l have, given the pair's clicks and positions before t, and j,

    E[c_t / e_j - c_{t+1} / e_l] = 0

since both terms have mean a_d (quasi-differences: Chamberlain 1992; Wooldridge 1997,
"Multiplicative panel data models without the strict exogeneity assumption"). With w = 1 / e, a
moment for each factor j is linear in w:

    g_j(w) = sum over displays at j that have a next one of (w_j c_t - w_l c_{t+1}).

K moments for K - 1 ratios are solved by the generalised method of moments (Hansen 1982), whose
weights are the inverse of the covariance of the queries' moments.

Two things bias it: clicks that depend on the pair's earlier clicks by themselves (users who come
back), and displays that come again only if they were clicked. `Displays.returns` shows the second.

    >>> rng = np.random.default_rng(1)
    >>> pair, factor = np.repeat(np.arange(400), 50), rng.integers(2, size=20_000)
    >>> clicks = rng.random(20_000) < np.repeat(rng.random(400) / 2, 50) / (1 + factor)
    >>> displays = Displays.of_rows(pair, factor, clicks, query=pair // 4)
    >>> fit_sequential(displays).estimate.round(1).tolist()
    [1.0, 0.5]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from twotowers.fitting.conditional import APART, NEVER, ORDERED
from twotowers.fitting.curves import Curve, as_curve, effective_clusters, inverse_root, laplacian_of
from twotowers.fitting.users import active_users, query_and_user

ITERATIONS = 50
TOLERANCE = 1e-10
NOISY = "clicks that link it to the reference are too few for an estimate above 0"
ENOUGH = 5
"""Queries for each moment, below which the moments' covariance is too uncertain for weights."""


@dataclass(frozen=True)
class Displays:
    """The displays of query-document pairs that came again, in the order of time within a pair.

    Attributes:
        pair: [rows] ascending numbers of pairs.
        factor: [rows] bias factors in [0, K).
        click: [rows] 0 or 1.
        query, user: [rows] clusters from 0; user is None where the log has none.
        names: [K] a row per bias factor.
        shown: [K] displays of the whole log.
    """

    pair: np.ndarray
    factor: np.ndarray
    click: np.ndarray
    query: np.ndarray
    user: np.ndarray | None
    names: pd.DataFrame
    shown: np.ndarray

    @classmethod
    def of_rows(
        cls,
        pair: np.ndarray,
        factor: np.ndarray,
        click: np.ndarray,
        *,
        query: np.ndarray,
        user: np.ndarray | None = None,
        names: pd.DataFrame | None = None,
        shown: np.ndarray | None = None,
    ) -> Displays:
        """From displays in the order of time. Pairs without a click may be left out.

        Args:
            pair: [rows] numbers of query-document pairs.
            factor: [rows] numbers of bias factors.
            click: [rows] 0 or 1.
            query, user: [rows] numbers of each row's query, and of its user if that is known.
            names: [K] what the factors are; by default positions from 1.
            shown: [K] displays of the whole log, if rows were left out.
        """
        factors = int(factor.max(initial=-1)) + 1 if names is None else len(names)
        if names is None:
            names = pd.DataFrame({"position": np.arange(1, factors + 1)})
        if shown is None:
            shown = np.bincount(factor, minlength=factors).astype(float)
        order = np.argsort(pair, kind="stable")
        start = np.flatnonzero(np.diff(pair[order], prepend=-1))
        times = np.diff(start, append=len(order))
        order = order[np.repeat(times > 1, times)]
        number = np.repeat(np.arange((times > 1).sum()), times[times > 1])
        _, query = np.unique(query[order], return_inverse=True)
        if user is not None:
            _, user = np.unique(user[order], return_inverse=True)
        return cls(number, factor[order], click[order].astype(float), query, user, names, shown)

    @property
    def factors(self) -> int:
        """K, the number of bias factors."""
        return len(self.shown)

    @property
    def firsts(self) -> np.ndarray:
        """Numbers of the rows whose pair comes again in the next row."""
        return np.flatnonzero(self.pair[1:] == self.pair[:-1])


def fit_sequential(displays: Displays, *, reference: int = 0, level: float = 0.95) -> Curve:
    """Examination relative to the reference, where positions may follow past clicks.

    Args:
        displays: of a log in the order of time.
        reference: number of the factor that has examination 1.
        level: of the intervals.

    Errors are clustered by query, and by user as well where users are known (Cameron, Gelbach and
    Miller 2011). A factor without an estimate has a reason.
    """
    first, factors = displays.firsts, displays.factors
    one, other = displays.factor[first], displays.factor[first + 1]

    def moves(value: np.ndarray) -> np.ndarray:
        """[K, K] sums over displays at a factor, by that of the next display."""
        return coo_array((value, (one, other)), shape=(factors, factors)).toarray()

    clicks, nexts = moves(displays.click[first]), moves(displays.click[first + 1])
    together = connected_components(clicks + nexts, directed=True, connection="strong")[1]
    inside = together == together[reference]
    weak = connected_components(moves(np.ones(len(one))), directed=False)[1]
    reason = np.where(inside, "", ORDERED).astype(object)
    reason[weak != weak[reference]] = APART
    reason[displays.shown == 0] = NEVER
    reason[reference] = ""
    clicks, nexts = (np.where(inside[:, None] & inside, each, 0) for each in (clicks, nexts))
    log_estimate = np.full(factors, np.nan)
    log_estimate[reference] = 0.0
    free = np.flatnonzero(inside & (np.arange(factors) != reference))
    covariance = np.zeros((factors, factors))
    queries, users = np.full((2, factors), np.nan)
    if len(free):
        first = first[inside[one] & inside[other]]
        inverse, bread = _solve(displays, first, clicks, nexts, free, reference)
        steps = [
            _cluster_sums(displays, first, inverse, cluster) @ bread.T / inverse[free]
            for cluster in _clusters(displays)
        ]
        covariance[np.ix_(free, free)] = _two_way(steps)
        queries[free] = effective_clusters(steps[0])
        if displays.user is not None:
            users[free] = effective_clusters(steps[1])
        positive = inverse[free] > 0
        log_estimate[free[positive]] = -np.log(inverse[free[positive]])
        reason[free[~positive]] = NOISY
    # As if each click counted alike on both sides of a move.
    links = clicks + nexts
    information = laplacian_of((links + links.T) / 4)
    root, _ = inverse_root(information, reference)
    return as_curve(
        displays.names,
        log_estimate,
        covariance,
        information=information,
        resistance=(root**2).sum(1),
        queries=queries,
        reason=reason,
        reference=reference,
        level=level,
        users=None if displays.user is None else (users, active_users(displays.user)),
    )


def _solve(
    displays: Displays,
    first: np.ndarray,
    clicks: np.ndarray,
    nexts: np.ndarray,
    free: np.ndarray,
    reference: int,
) -> tuple[np.ndarray, np.ndarray]:
    """[K] w = 1 / e, and [free, K] by how much each moment moves those that are free.

    Args:
        displays: of the log.
        first: numbers of the displays whose moves count.
        clicks, nexts: [K, K] clicks of these, and of the displays after them, by both factors.
        free, reference: numbers of the factors whose w is asked for, and of that with w = 1.
    """
    factors, moments = displays.factors, np.sort(np.append(free, reference))
    slope = np.diag(clicks.sum(1)) - nexts
    design, target = slope[np.ix_(moments, free)], -slope[moments, reference]
    weight = np.diag(1 / np.maximum((clicks + nexts).sum(1), 1)[moments])
    inverse = np.ones(factors)
    several = np.unique(displays.query[first]).size > ENOUGH * len(moments)
    for _ in range(ITERATIONS):
        bread = np.linalg.pinv(design.T @ weight @ design) @ design.T @ weight
        moved = bread @ target
        ended = np.abs(moved - inverse[free]).max() < TOLERANCE * np.abs(moved).max()
        inverse[free] = moved
        if ended or not several or (moved <= 0).any():
            break
        scores = _cluster_sums(displays, first, inverse, displays.query)[:, moments]
        weight = np.linalg.pinv((scores.T @ scores).toarray(), hermitian=True)
    whole = np.zeros((len(free), factors))
    whole[:, moments] = bread
    return inverse, whole


def _cluster_sums(displays, first, inverse, cluster) -> csr_array:
    """[clusters, K] what each cluster adds to the moments.

    A display at factor k adds w_k c - a_d to the moment of its own factor, and takes it away from
    that of the display before, where a_d is the pair's mean of w_k c. In the sum over a pair a_d
    drops out. It keeps a user's share of the moments at mean 0.
    """
    scaled = inverse[displays.factor] * displays.click
    pairs = int(displays.pair.max(initial=-1)) + 1
    number = np.maximum(np.bincount(displays.pair, minlength=pairs), 1)
    residual = scaled - (np.bincount(displays.pair, scaled, pairs) / number)[displays.pair]
    own, factor = np.concatenate([first, first + 1]), displays.factor[first]
    value = np.concatenate([residual[first], -residual[first + 1]])
    size = (int(cluster.max(initial=-1)) + 1, displays.factors)
    return coo_array((value, (cluster[own], np.concatenate([factor, factor]))), shape=size).tocsr()


def _clusters(displays: Displays) -> list[np.ndarray]:
    """Numbers of queries; and of users, and of both together, where users are known."""
    if displays.user is None:
        return [displays.query]
    return [displays.query, displays.user, query_and_user(displays.query, displays.user)]


def _two_way(steps: list[np.ndarray]) -> np.ndarray:
    """The covariance of sums whose terms depend on each other within queries, and within users.

    V = V_query + V_user - V_both. It need not be positive: a variance is at least that by queries
    alone, and by users alone.
    """
    each = [step.T @ step for step in steps]
    if len(each) == 1:
        return each[0]
    covariance = each[0] + each[1] - each[2]
    least = np.maximum(np.diag(each[0]), np.diag(each[1]))
    return covariance + np.diag(np.maximum(least - np.diag(covariance), 0))

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
back), and displays that come again only if they were clicked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from twotowers.fitting.conditional import APART, NEVER, ORDERED
from twotowers.fitting.curves import (
    Curve,
    active_users,
    as_curve,
    inverse_root,
    laplacian_of,
    query_and_user,
)
from twotowers.intervals import effective_clusters

ITERATIONS = 50
TOLERANCE = 1e-10
NOISY = "clicks that link it to the reference are too few for an estimate above 0"
ENOUGH = 5
"""Queries for each moment, below which the moments' covariance is too uncertain for weights."""


@dataclass(frozen=True)
class Displays:
    """Displays (impressions) of the query-document pairs that were shown twice or more, a row each.

    Rows are in the order of pairs and, within a pair, of time.

    Attributes:
        pair: [rows] number of the pair, from 0.
        factor: [rows] number of the bias factor, in [0, K).
        click: [rows] 0 or 1.
        query, user: [rows] numbers from 0, by which errors are clustered; user may be None.
        names: a row per bias factor, such as its position.
        shown: [K] how often the whole log shows each factor, pairs shown once included.
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
        """From displays [rows] in the order of time. Pairs without a click may be left out.

        Clicks are 0 or 1; queries and users are numbers from 0. `names` [K] are positions from 1 by
        default; `shown` [K] are displays of the whole log, if rows were left out.
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
        user = None if user is None else user[order]
        return cls(number, factor[order], click[order].astype(float), query, user, names, shown)

    @property
    def factors(self) -> int:
        """K, the number of bias factors."""
        return len(self.shown)

    @property
    def firsts(self) -> np.ndarray:
        """Numbers of the rows whose pair comes again in the next row."""
        return np.flatnonzero(self.pair[1:] == self.pair[:-1])


def fit_sequential(portions: Iterable[Displays], *, reference: int = 0) -> Curve:
    """Examination relative to the reference, where positions may follow past clicks.

    A log's displays come in portions, each of other queries and in the order of time. Errors are
    clustered by query, and by user as well where users are known (Cameron, Gelbach and Miller
    2011). A factor without an estimate has a reason.
    """
    moves, last, active = _moves(portions)
    factors, shown = last.factors, last.shown

    def sums(value: np.ndarray) -> np.ndarray:
        """[K, K] sums over displays at a factor, by that of the next display."""
        cell = moves["one"] * factors + moves["other"]
        return np.bincount(cell, value, factors**2).reshape(factors, factors)

    clicks, nexts = sums(moves["clicks"]), sums(moves["nexts"])
    together = connected_components(clicks + nexts, directed=True, connection="strong")[1]
    inside = together == together[reference]
    weak = connected_components(sums(moves["displays"]), directed=False)[1]
    reason = np.where(inside, "", ORDERED).astype(object)
    reason[weak != weak[reference]] = APART
    reason[shown == 0] = NEVER
    reason[reference] = ""
    clicks, nexts = (np.where(inside[:, None] & inside, each, 0) for each in (clicks, nexts))
    log_estimate = np.full(factors, np.nan)
    log_estimate[reference] = 0.0
    free = np.flatnonzero(inside & (np.arange(factors) != reference))
    covariance = np.zeros((factors, factors))
    queries, users = np.full((2, factors), np.nan)
    if len(free):
        moves = moves[inside[moves["one"]] & inside[moves["other"]]]

        def scores(inverse: np.ndarray) -> csr_array:
            """[queries, K] what each query adds to the moments, which are linear in w."""
            value = inverse[moves["one"]] * moves["clicks"]
            value = value - inverse[moves["other"]] * moves["nexts"]
            size = int(moves["query"].max(initial=-1)) + 1, factors
            return coo_array((value, (moves["query"], moves["one"])), shape=size).tocsr()

        inverse, bread = _solve(scores, clicks, nexts, free, reference)
        # A factor whose inverse is 0 gets no estimate, and nothing to scale.
        scale = np.where(inverse[free] == 0, np.nan, inverse[free])
        steps = scores(inverse) @ bread.T / scale
        queries[free] = effective_clusters(steps)
        covariance[np.ix_(free, free)] = steps.T @ steps
        if active is not None:
            own, both = _by_user(portions, inside, inverse, bread / scale[:, None])
            users[free] = effective_clusters(own)
            covariance[np.ix_(free, free)] = _two_way(steps.T @ steps, own.T @ own, both)
        positive = inverse[free] > 0
        log_estimate[free[positive]] = -np.log(inverse[free[positive]])
        reason[free[~positive]] = NOISY
    # As if each click counted alike on both sides of a move.
    links = clicks + nexts
    information = laplacian_of((links + links.T) / 4)
    root, _ = inverse_root(information, reference)
    return as_curve(
        last.names,
        log_estimate,
        covariance,
        information=information,
        resistance=(root**2).sum(1),
        queries=queries,
        reason=reason,
        reference=reference,
        users=None if active is None else (users, active),
    )


def _moves(portions: Iterable[Displays]) -> tuple[np.recarray, Displays, float | None]:
    """Displays at a factor whose pair comes again at another, by query: their number, their clicks,
    and those of the next display; the last portion; and the effective number of users by their
    displays, where they are known. Queries are numbered over all portions."""
    moves, queries, users = [], 0, []
    for each in portions:
        first = each.firsts
        columns = {"query": each.query[first] + queries, "one": each.factor[first]}
        columns |= {"other": each.factor[first + 1], "clicks": each.click[first]}
        rows = pd.DataFrame(columns | {"nexts": each.click[first + 1], "displays": 1.0})
        moves.append(rows.groupby(["query", "one", "other"], as_index=False).sum())
        queries += int(each.query.max(initial=-1)) + 1
        if each.user is not None:
            users.append(np.bincount(each.user))
    numbers = [np.arange(len(own)) for own in users]
    active = active_users(np.concatenate(numbers), np.concatenate(users)) if users else None
    return pd.concat(moves).to_records(index=False), each, active


def _solve(
    scores: Callable[[np.ndarray], csr_array],
    clicks: np.ndarray,
    nexts: np.ndarray,
    free: np.ndarray,
    reference: int,
) -> tuple[np.ndarray, np.ndarray]:
    """[K] w = 1 / e, and [free, K] by how much each moment moves those that are free.

    `scores`: w -> [queries, K] what each query adds to the moments. `clicks` and `nexts` [K, K] are
    clicks of these, and of the displays after them, by both factors. w is 1 at the reference.
    """
    factors, moments = len(clicks), np.sort(np.append(free, reference))
    slope = np.diag(clicks.sum(1)) - nexts
    design, target = slope[np.ix_(moments, free)], -slope[moments, reference]
    weight = np.diag(1 / np.maximum((clicks + nexts).sum(1), 1)[moments])
    inverse = np.ones(factors)
    queries = np.count_nonzero(np.diff(scores(inverse).indptr))
    for _ in range(ITERATIONS):
        bread = np.linalg.pinv(design.T @ weight @ design) @ design.T @ weight
        moved = bread @ target
        ended = np.abs(moved - inverse[free]).max() < TOLERANCE * np.abs(moved).max()
        inverse[free] = moved
        if ended or queries <= ENOUGH * len(moments) or (moved <= 0).any():
            break
        steps = scores(inverse)[:, moments]
        weight = np.linalg.pinv((steps.T @ steps).toarray(), hermitian=True)
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


def _by_user(portions, inside, inverse, bread) -> tuple[np.ndarray, np.ndarray]:
    """[users, free] what each user moves, and the [free, free] covariance by query and user."""
    own, both = [], 0
    for each in portions:
        first = each.firsts
        first = first[inside[each.factor[first]] & inside[each.factor[first + 1]]]
        own.append(_cluster_sums(each, first, inverse, each.user))
        steps = _cluster_sums(each, first, inverse, query_and_user(each.query, each.user)) @ bread.T
        both = both + steps.T @ steps
    users = max(each.shape[0] for each in own)
    for each in own:
        each.resize(users, len(inverse))
    return sum(own[1:], own[0]) @ bread.T, both


def _two_way(query: np.ndarray, user: np.ndarray, both: np.ndarray) -> np.ndarray:
    """The covariance of sums whose terms depend on each other within queries, and within users.

    V = V_query + V_user - V_both. It need not be positive: a variance is at least that by queries
    alone, and by users alone.
    """
    covariance = query + user - both
    least = np.maximum(np.diag(query), np.diag(user))
    return covariance + np.diag(np.maximum(least - np.diag(covariance), 0))

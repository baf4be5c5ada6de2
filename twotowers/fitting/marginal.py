"""Empirical Bayes: attraction integrated over its law, which the clicks estimate.

Clicks of pair d are c_dk ~ Poisson(n_dk e_k a_d). The attraction of pairs has a gamma law
with shape s and mean m. The integral over attraction is in closed form (Hausman, Hall and
Griliches 1984). With C_d = sum_k c_dk and N_d = sum_k n_dk e_k, up to a constant,

    l = sum_d sum_k c_dk ln e_k + ln Gamma(s + C_d) - ln Gamma(s) + s ln b - (s + C_d) ln(b + N_d),

where b = s / m. Its score is c_dk - n_dk e_k (s + C_d) / (b + N_d): the clicks expected if
attraction were its posterior mean. At s = b = 0 this is the score of the conditional estimate
(`twotowers.fitting.conditional`), which so has a prior that says nothing. A prior says more, and
pairs that were seen under one factor only tell something, too. The price is an assumption: a pair's
attraction does not depend on where it was shown. If relevance follows rank, the estimate is biased
(Mundlak 1978). Errors are clustered by query, so they need neither Poisson clicks nor a gamma law.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pair, factor = np.repeat(np.arange(3000), 2), np.tile([0, 1], 3000)
    >>> clicks = rng.poisson(rng.gamma(2, 0.1, 3000)[pair] * np.array([1, 0.5])[factor])
    >>> counts = PairCounts.of_arrays(pair, factor, np.full(6000, 9), np.minimum(clicks, 9))
    >>> fit_marginal(counts).estimate.round(1).tolist()
    [1.0, 0.5]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import digamma, gammaln, polygamma

from twotowers.errors import InputError
from twotowers.fitting.conditional import APART, NEVER, UNCLICKED
from twotowers.fitting.curves import Curve, as_curve, contrasts, effective_clusters
from twotowers.fitting.pair_counts import PairCounts

BOUND = 15.0
"""Of logarithms: a log-ratio, a shape, a rate."""
LONGEST = 2.0
"""Step of a logarithm."""
ITERATIONS = 200
NEAR = 1e-3
"""The most of likelihood that may be left to gain: a small part of an error."""


def fit_marginal(counts: PairCounts, *, reference: int = 0, level: float = 0.95) -> Curve:
    """Examination relative to the reference, with attraction integrated out.

    Args:
        counts: impressions and clicks by pair and bias factor; `every` pair of the log tells.
        reference: number of the factor that has examination 1.
        level: of the intervals.
    """
    factors = counts.factors
    clicks = np.bincount(counts.factor, counts.clicks, factors)
    seen = np.bincount(counts.factor, minlength=factors) > 0
    told = clicks > 0
    reason = np.full(factors, "", object)
    reason[~told] = UNCLICKED
    reason[~seen] = APART
    reason[counts.shown == 0] = NEVER
    estimate, covariance = np.full(factors, np.nan), np.zeros((factors, factors))
    estimate[reference], reason[reference] = 0, ""
    resistance, queries = np.full((2, factors), np.inf)
    if told[reference]:
        free = np.flatnonzero(told & (np.arange(factors) != reference))
        # In a unit of impressions with a click each, b is near s, and logarithms near 0.
        unit = counts.impressions.sum() / clicks.sum()
        problem = _Marginal(replace(counts, impressions=counts.impressions / unit), free)
        found, inverse = problem.solve()
        steps = problem.by_query(found) @ inverse
        groups = len(steps)
        own = len(free)
        covariance[np.ix_(free, free)] = (steps.T @ steps)[:own, :own] * groups / max(groups - 1, 1)
        estimate[free], resistance[free] = found[:own], np.diag(inverse)[:own]
        queries[free] = effective_clusters(steps)[:own]
    else:
        reason[reason == ""] = UNCLICKED
        reason[reference] = ""
    subtract = contrasts(factors, reference)
    curve = as_curve(
        counts.names,
        estimate,
        subtract @ covariance @ subtract.T,
        information=np.zeros((factors, factors)),
        resistance=resistance,
        queries=queries,
        reason=reason,
        reference=reference,
        level=level,
    )
    apart = counts.component != counts.component[reference]
    curve.reason[apart & np.isfinite(curve.estimate)] = LAW_ALONE
    return curve


LAW_ALONE = "doubtful: no document links it to the reference; this is the law of attraction alone"


class _Marginal:
    """The likelihood of [log-ratios of free factors, ln s, ln b]."""

    def __init__(self, counts: PairCounts, free: np.ndarray):
        self.counts, self.free, self.pairs = counts, free, len(counts.cluster)
        self.clicks = np.bincount(counts.pair, counts.clicks, self.pairs)
        self.bounds = counts.factor, np.append(counts.starts, len(counts.pair))

    def _by_pair(self, rows: np.ndarray) -> csr_array:
        """[pairs, free] of values of rows."""
        found = csr_array((rows, *self.bounds), shape=(self.pairs, self.counts.factors))
        return found[:, self.free]

    def _terms(self, parameters):
        """Per row n e; s and b; per pair s + C and b + N."""
        theta = np.zeros(self.counts.factors)
        theta[self.free] = parameters[: len(self.free)]
        shape, rate = np.exp(parameters[len(self.free) :])
        exposure = self.counts.impressions * np.exp(theta)[self.counts.factor]
        total = rate + np.bincount(self.counts.pair, exposure, self.pairs)
        return theta, exposure, shape, rate, shape + self.clicks, total

    def likelihood(self, parameters) -> float:
        """Its logarithm, up to a constant."""
        theta, _, shape, rate, above, total = self._terms(parameters)
        prior = gammaln(above) - gammaln(shape) + shape * np.log(rate) - above * np.log(total)
        return self.counts.clicks @ theta[self.counts.factor] + prior.sum()

    def scores(self, parameters) -> csr_array:
        """[pairs, parameters] scores of each pair."""
        _, exposure, shape, rate, above, total = self._terms(parameters)
        rows = self.counts.clicks - exposure * (above / total)[self.counts.pair]
        of_shape = shape * (digamma(above) - digamma(shape) + np.log(rate) - np.log(total))
        of_rate = shape - rate * above / total
        laws = csr_array(np.column_stack([of_shape, of_rate]))
        return hstack([self._by_pair(rows), laws]).tocsr()

    def information(self, parameters) -> np.ndarray:
        """[parameters, parameters] observed information."""
        _, exposure, shape, rate, above, total = self._terms(parameters)
        left = 1 - rate / total
        seen = self._by_pair(exposure)
        weighed = seen.multiply((above / total**2)[:, None]).tocsr()
        ratios = np.diag(seen.T @ (above / total)) - (seen.T @ weighed).toarray()
        cross = seen.T @ np.column_stack([shape / total, -above * rate / total**2])
        first = shape * (digamma(above) - digamma(shape) + np.log(rate) - np.log(total))
        first += shape**2 * (polygamma(1, above) - polygamma(1, shape))
        both, second = shape * left, -rate * above / total * left
        laws = -np.array([[first.sum(), both.sum()], [both.sum(), second.sum()]])
        return np.block([[ratios, cross], [cross.T, laws]])

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """The maximum by Newton's method, and the inverse of the information there."""
        at = np.zeros(len(self.free) + 2)  # shape and rate 1
        value = self.likelihood(at)
        for _ in range(ITERATIONS):
            curvature, direction = np.linalg.eigh(self.information(at))
            # Where the likelihood is not concave, the step goes uphill, too.
            curvature = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max())
            score = np.asarray(self.scores(at).sum(0))
            # At the bound no score counts that leads beyond it.
            score[(np.abs(at) >= BOUND) & (score * at > 0)] = 0
            step = direction @ (direction.T @ score / curvature)
            left = score @ step  # Newton's decrement: twice what is left to gain.
            step *= min(1, LONGEST / max(np.abs(step).max(), 1e-300))
            for halving in range(30):
                moved = np.clip(at + step / 2**halving, -BOUND, BOUND)
                reached = self.likelihood(moved)
                if reached > value:
                    break
            else:
                break
            gained, at, value = reached - value, moved, reached
            if gained < 1e-9:
                break
        if left > NEAR + 1e-12 * abs(value):
            raise InputError(
                "Newton's method found no optimum",
                field="clicks",
                expected="an attraction with a gamma law",
            )
        return at, np.linalg.pinv(self.information(at), rcond=1e-12, hermitian=True)

    def by_query(self, parameters) -> np.ndarray:
        """[clusters, parameters] scores."""
        cluster = self.counts.cluster
        groups = csr_array(
            (np.ones(self.pairs), (cluster, np.arange(self.pairs))),
            shape=(int(cluster.max(initial=-1)) + 1, self.pairs),
        )
        return (groups @ self.scores(parameters)).toarray()

"""Empirical Bayes: attraction integrated over a law per kind of pair, which the clicks estimate.

Clicks of pair d are c_dk ~ Poisson(n_dk e_k a_d). The attraction of a pair of kind z has a gamma
law with shape s_z and mean m_z. The integral over attraction is in closed form (Hausman, Hall and
Griliches 1984). With C_d = sum_k c_dk and N_d = sum_k n_dk e_k, up to a constant,

    l = sum_d sum_k c_dk ln e_k + ln Gamma(s + C_d) - ln Gamma(s) + s ln b - (s + C_d) ln(b + N_d),

where b = s / m. Its score is c_dk - n_dk e_k (s + C_d) / (b + N_d): the clicks expected if
attraction were its posterior mean. At s = b = 0 this is the score of the conditional estimate
(`twotowers.fitting.conditional`), which so has a prior that says nothing. A prior says more, and
pairs that were seen under one factor only tell something, too. The price is an assumption: given
its kind, a pair's attraction does not depend on where it was shown. If relevance follows rank,
kinds by rank (`kinds_by_rank`) are needed (Mundlak 1978), and are still no guarantee. Errors are
clustered by query, so they need neither Poisson clicks nor a gamma law.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pair, factor = np.repeat(np.arange(3000), 2), np.tile([0, 1], 3000)
    >>> clicks = rng.poisson(rng.gamma(2, 0.1, 3000)[pair] * np.array([1, 0.5])[factor])
    >>> counts = PairCounts.of_arrays(pair, factor, np.full(6000, 9), np.minimum(clicks, 9))
    >>> fit_marginal(counts).estimate.round(1).tolist()
    [1.0, 0.5]
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import digamma, gammaln, polygamma

from twotowers.errors import InputError
from twotowers.fitting.conditional import APART, NEVER, UNCLICKED
from twotowers.fitting.curves import Curve, as_curve, contrasts
from twotowers.fitting.pair_counts import PairCounts

BOUND = 15.0
"""Of logarithms: a log-ratio, a shape, a rate."""
LONGEST = 2.0
"""Step of a logarithm."""
ITERATIONS = 200


def kinds_by_rank(counts: PairCounts, kinds: int = 5) -> np.ndarray:
    """[pairs] kind of each pair: by its mean factor number over impressions, in parts of one size.

    Args:
        counts: whose factors are in the order of the page.
        kinds: at most this number.
    """
    weight = np.bincount(counts.pair, counts.impressions)
    mean = np.bincount(counts.pair, counts.impressions * counts.factor) / weight
    edges = np.unique(np.quantile(mean, np.linspace(0, 1, kinds + 1)[1:-1]))
    return np.unique(np.searchsorted(edges, mean), return_inverse=True)[1]


def fit_marginal(
    counts: PairCounts, *, kind: np.ndarray | None = None, reference: int = 0, level: float = 0.95
) -> Curve:
    """Examination relative to the reference, with attraction integrated out.

    Args:
        counts: impressions and clicks by pair and bias factor; `every` pair of the log tells.
        kind: [pairs] integers from 0: pairs of one kind share a law of attraction. None: all do.
        reference: number of the factor that has examination 1.
        level: of the intervals.

    Raises:
        InputError: a kind for another number of pairs.
    """
    factors, pairs = counts.factors, len(counts.cluster)
    kind = np.zeros(pairs, int) if kind is None else np.unique(kind, return_inverse=True)[1]
    if len(kind) != pairs:
        raise InputError(f"has {len(kind):,} values", field="kind", expected=f"one of {pairs:,}")
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
        problem = _Marginal(counts, kind, free)
        found, inverse = problem.solve()
        steps = problem.by_query(found) @ inverse
        groups = len(steps)
        own = len(free)
        covariance[np.ix_(free, free)] = (steps.T @ steps)[:own, :own] * groups / max(groups - 1, 1)
        estimate[free], resistance[free] = found[:own], np.diag(inverse)[:own]
        with np.errstate(invalid="ignore", divide="ignore"):
            queries[free] = ((steps**2).sum(0) ** 2 / (steps**4).sum(0))[:own]
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
    """The likelihood of [log-ratios of free factors, ln s per kind, ln b per kind]."""

    def __init__(self, counts: PairCounts, kind: np.ndarray, free: np.ndarray):
        self.counts, self.kind, self.free = counts, kind, free
        self.kinds, self.pairs = int(kind.max(initial=-1)) + 1, len(kind)
        self.clicks = np.bincount(counts.pair, counts.clicks, self.pairs)
        bounds = np.append(counts.starts, len(counts.pair))
        self.bounds = counts.factor, bounds
        self.of_kind = csr_array(
            (np.ones(self.pairs), (self.kind, np.arange(self.pairs))),
            shape=(self.kinds, self.pairs),
        )

    def _by_pair(self, rows: np.ndarray) -> csr_array:
        """[pairs, free] of values of rows."""
        found = csr_array((rows, *self.bounds), shape=(self.pairs, self.counts.factors))
        return found[:, self.free]

    def _terms(self, parameters):
        """Per row n e; per pair s, b, s + C and b + N."""
        theta = np.zeros(self.counts.factors)
        theta[self.free] = parameters[: len(self.free)]
        shape, rate = np.exp(parameters[len(self.free) :]).reshape(2, -1)[:, self.kind]
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
        laws = [self.of_kind.T.multiply(each[:, None]).tocsr() for each in (of_shape, of_rate)]
        return hstack([self._by_pair(rows), *laws]).tocsr()

    def information(self, parameters) -> np.ndarray:
        """[parameters, parameters] observed information."""
        _, exposure, shape, rate, above, total = self._terms(parameters)
        left = 1 - rate / total
        seen = self._by_pair(exposure)
        weighed = seen.multiply((above / total**2)[:, None]).tocsr()
        ratios = np.diag(seen.T @ (above / total)) - (seen.T @ weighed).toarray()
        of_shape = seen.multiply((shape / total)[:, None]).tocsr()
        of_rate = seen.multiply((-above * rate / total**2)[:, None]).tocsr()
        cross = np.hstack([(each.T @ self.of_kind.T).toarray() for each in (of_shape, of_rate)])
        first = shape * (digamma(above) - digamma(shape) + np.log(rate) - np.log(total))
        first += shape**2 * (polygamma(1, above) - polygamma(1, shape))
        both, second = shape * left, -rate * above / total * left
        laws = -np.block(
            [
                [np.diag(self.of_kind @ first), np.diag(self.of_kind @ both)],
                [np.diag(self.of_kind @ both), np.diag(self.of_kind @ second)],
            ]
        )
        return np.block([[ratios, cross], [cross.T, laws]])

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """The maximum by Newton's method, and the inverse of the information there."""
        shown = np.bincount(self.kind[self.counts.pair], self.counts.impressions, self.kinds)
        clicks = np.bincount(self.kind, self.clicks, self.kinds)
        rate = np.log((shown + 1) / (clicks + 0.5))  # shape 1
        at = np.concatenate([np.zeros(len(self.free) + self.kinds), rate])
        value = self.likelihood(at)
        for _ in range(ITERATIONS):
            curvature, direction = np.linalg.eigh(self.information(at))
            # Where the likelihood is not concave, the step goes uphill, too.
            curvature = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max())
            score = np.asarray(self.scores(at).sum(0))
            step = direction @ (direction.T @ score / curvature)
            step *= min(1, LONGEST / np.abs(step).max())
            for halving in range(30):
                moved = np.clip(at + step / 2**halving, -BOUND, BOUND)
                reached = self.likelihood(moved)
                if reached >= value:
                    break
            gained, at, value = reached - value, moved, reached
            if gained < 1e-9:
                break
        return at, np.linalg.pinv(self.information(at), rcond=1e-12, hermitian=True)

    def by_query(self, parameters) -> np.ndarray:
        """[clusters, parameters] scores."""
        cluster = self.counts.cluster
        groups = csr_array(
            (np.ones(self.pairs), (cluster, np.arange(self.pairs))),
            shape=(int(cluster.max(initial=-1)) + 1, self.pairs),
        )
        return (groups @ self.scores(parameters)).toarray()

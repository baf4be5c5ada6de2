"""Conditional estimates of examination: where the clicks of a pair fell, given how many it had.

A query-document pair d was shown n_dk times under bias factor k and clicked c_dk times there. Its
attraction a_d is unknown, and most pairs are seen a few times. Estimates of so many parameters
would bias that of examination (Neyman and Scott 1948). Given the pair's clicks C_d = sum_k c_dk,
its attraction drops out.

**Product form**: E[c_dk] = n_dk a_d e_k. The pair's clicks fall on the factors as a multinomial,

    p_dk = n_dk e_k / sum_l n_dl e_l,      score_k = sum_d c_dk - C_d p_dk.

This is the Poisson likelihood with an effect per pair, and with that effect at its optimum. Its
score has mean 0 for any distribution of clicks whose mean is a product (Gourieroux, Monfort and
Trognon 1984; Wooldridge 1999). So clicks may be single, repeated or dependent, and click rates may
be high; only the errors must not rest on Poisson's variance. The information is a Laplacian with
the weights w_kl = sum_d C_d p_dk p_dl (`twotowers.fitting.curves`).

**Additive form**: the log-odds of a click are gamma_d + theta_k. The pair's clicks have the
distribution of `twotowers.fitting.conditional_logit`, without approximation, and estimates are
ratios of odds. It needs clicks that are independent given pair and factor.

What was shown where must not follow from the pair's own clicks.
"""

import numpy as np
from scipy.sparse import coo_array, csr_array

from twotowers.errors import InputError
from twotowers.fitting.conditional_logit import Moments, logit_moments
from twotowers.fitting.curves import (
    ALONE,
    LEVERAGE,
    Blocks,
    Curve,
    as_curve,
    influences,
    inverse_root,
)
from twotowers.fitting.maximise import Point, Step, maximise
from twotowers.fitting.pair_counts import PairCounts, factor_components, strong_components

LONGEST = 5.0
"""Step of a logarithm."""
MOST_FACTORS = 2_000
"""The information is a dense matrix."""
MOST_VARIANCE = 1e4
"""Of a log-ratio by the information: beyond it the clicks are all on one side."""


def fit_conditional(counts: PairCounts, *, form: str = "product", reference: int = 0) -> Curve:
    """Examination relative to the reference, given the clicks of each pair.

    `form` is 'product' for ratios of examination, 'additive' for ratios of odds. Errors are
    clustered by query, by the jackknife. A factor without an estimate has a reason.
    """
    factors = counts.factors
    if not 0 < factors <= MOST_FACTORS:
        raise InputError(
            f"{factors:,} bias factors", field="factor", expected=f"1 to {MOST_FACTORS:,}"
        )
    clicked = counts.where()
    useful = _useful(clicked, form)
    together = strong_components(useful, form)
    inside = together == together[reference]
    reason = _reasons(counts, clicked, inside, reference)
    useful = _useful(useful.where(inside[useful.factor]), form)
    theta, moments = optimum(useful, FORMS[form], np.zeros(factors))
    root, _ = inverse_root(moments.information, reference)
    resistance = (root**2).sum(1)
    steps, alone, blocks = _steps(useful, moments, form, reference)
    covariance = steps.T @ steps + alone.T @ alone
    own, _ = inverse_root(blocks.laplacian(), reference)
    queries = blocks.effective(own @ own.T)
    reason[(resistance > MOST_VARIANCE) & (reason == "")] = ORDERED
    reason[reference] = ""
    curve = as_curve(
        counts.names,
        theta - theta[reference],
        covariance,
        information=moments.information,
        resistance=resistance,
        queries=queries,
        reason=reason,
        reference=reference,
    )
    rests = (alone**2).sum(0) > LEVERAGE * resistance
    curve.reason[rests & (curve.reason == "")] = ALONE
    return curve


def conditional_influences(
    counts: PairCounts, curve: Curve, *, form: str = "product"
) -> tuple[np.ndarray, np.ndarray]:
    """What each query moves the log-ratios of a curve by: the jackknife's steps.

    [queries] numbers of the queries that tell of bias, and [queries, K] their steps, whose sum of
    squares is the variance. 0 where the curve has no estimate. What a query alone tells is
    left out: ratios that rest on it are doubtful.
    """
    known = curve.estimate > 0
    theta = np.log(np.where(known, curve.estimate, 1))
    useful = _useful(counts.where(), form)
    useful = _useful(useful.where(known[useful.factor]), form)
    moments = FORMS[form](useful, theta)
    steps, _, _ = _steps(useful, moments, form, curve.reference)
    return useful.query, np.where(known, steps, 0)


def _steps(useful: PairCounts, moments: Moments, form: str, reference: int):
    """Those of `influences`, relative to the reference; and the information by query."""
    blocks = Blocks(by_pair(useful, moments.weight), useful.cluster)
    scores = coo_array(
        (residuals(useful, moments), (useful.cluster[useful.pair], useful.factor)),
        shape=(len(useful.query), useful.factors),
    ).tocsr()
    information = moments.information if form == "additive" else None
    return *influences(blocks, scores, reference, information=information), blocks


def residuals(useful: PairCounts, moments: Moments) -> np.ndarray:
    """[rows] clicks less those expected. Their sum over a pair is 0, to all digits of the least."""
    left = useful.clicks - moments.expected
    starts = useful.starts
    excess = np.add.reduceat(left, starts) / np.add.reduceat(moments.weight, starts)
    return left - moments.weight * excess[useful.pair]


NEVER = "never shown"
APART = "no document was shown both here and at the reference, nor by way of other factors"
UNCLICKED = "no click on a document that links it to the reference"
ORDERED = "documents that link it to the reference were clicked on one side only"


def _reasons(
    counts: PairCounts, clicked: PairCounts, inside: np.ndarray, reference: int
) -> np.ndarray:
    """[K] why a factor has no estimate; '' if it is `inside`. `clicked` are pairs with a click."""
    tied = factor_components(clicked.pair, clicked.factor, factors=counts.factors)
    reason = np.where(inside, "", ORDERED).astype(object)
    reason[tied != tied[reference]] = UNCLICKED
    reason[counts.component != counts.component[reference]] = APART
    reason[counts.shown == 0] = NEVER
    return reason


def _useful(useful: PairCounts, form: str) -> PairCounts:
    return useful.where(unsure(useful)) if form == "additive" else useful


def unsure(useful: PairCounts) -> np.ndarray:
    """[rows] whether their pair has impressions without click: otherwise odds say nothing of it."""
    left = np.bincount(useful.pair, useful.impressions - useful.clicks, len(useful.cluster))
    return (left > 0)[useful.pair]


def product_moments(useful: PairCounts, theta: np.ndarray) -> Moments:
    """The multinomial of a pair's clicks: expected C_d p_dk, which are the weights too."""
    share = useful.impressions * np.exp(theta)[useful.factor]
    starts = useful.starts
    total = np.add.reduceat(share, starts)
    clicks = np.add.reduceat(useful.clicks, starts)
    expected = share * (clicks / total)[useful.pair]
    likelihood = useful.clicks @ theta[useful.factor] - clicks @ np.log(total)
    laplacian = Blocks(by_pair(useful, expected), useful.cluster).laplacian()
    return Moments(likelihood, expected, expected, laplacian)


FORMS = {"product": product_moments, "additive": logit_moments}


def by_pair(useful: PairCounts, weight: np.ndarray) -> csr_array:
    bounds = np.append(useful.starts, len(useful.pair))
    return csr_array((weight, useful.factor, bounds), shape=(len(useful.cluster), useful.factors))


def optimum(useful: PairCounts, form, start: np.ndarray) -> tuple[np.ndarray, Moments]:
    """[K] theta at the maximum of the likelihood, and the moments there."""
    if not len(useful.pair):
        nothing = np.zeros(0)
        return start, Moments(0, nothing, nothing, np.zeros((useful.factors,) * 2))

    def point(theta: np.ndarray) -> Point:
        moments = form(useful, theta)

        def step() -> Step:
            root, _ = inverse_root(moments.information, 0)
            along = root.T @ np.bincount(useful.factor, residuals(useful, moments), useful.factors)
            move = root @ along
            return Step(move, along @ along, np.abs(move).max())

        return Point(moments.likelihood, step, moments)

    # Where impressions are very uneven, the first steps would leap beyond what exp can hold.
    theta, reached = maximise(point, start, longest=LONGEST)
    return theta, reached.known

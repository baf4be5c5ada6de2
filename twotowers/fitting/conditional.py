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

    >>> from twotowers.fitting.pair_counts import PairCounts
    >>> counts = PairCounts.of_arrays(
    ...     pair=[0, 0, 1, 1], factor=[0, 1, 0, 1], impressions=[100, 100, 30, 60],
    ...     clicks=[40, 20, 6, 6])
    >>> curve = fit_conditional(counts)
    >>> curve.estimate.round(3).tolist()
    [1.0, 0.5]
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from twotowers.errors import InputError, nearest
from twotowers.fitting.conditional_logit import Moments, logit_moments
from twotowers.fitting.curves import (
    Blocks,
    Curve,
    as_curve,
    contrasts,
    inverse_root,
    sandwich,
)
from twotowers.fitting.pair_counts import PairCounts, components, strong_components

ITERATIONS = 100
TOLERANCE = 1e-14
MOST_FACTORS = 2_000
"""The information is a dense matrix."""
MOST_VARIANCE = 1e4
"""Of a log-ratio by the information: beyond it the clicks are all on one side."""
ERRORS = ("information", "CR0", "CR1", "CR2", "CR3")


def fit_conditional(
    counts: PairCounts,
    *,
    form: str = "product",
    design: np.ndarray | None = None,
    reference: int = 0,
    errors: str = "CR3",
    level: float = 0.95,
) -> Curve:
    """Examination relative to the reference, given the clicks of each pair.

    Args:
        counts: impressions and clicks by pair and bias factor.
        form: 'product' for ratios of examination, 'additive' for ratios of odds.
        design: [K, parameters] the logarithm of examination is design @ theta; by default a value
            per bias factor. For position x device as a product of two effects, it has a column per
            position and per device.
        reference: number of the factor that has examination 1.
        errors: 'information' for Poisson's variance; clustered by query as it is ('CR0'), with
            G / (G - 1) ('CR1'), by bias-reduced linearisation ('CR2'), by the jackknife ('CR3').
        level: of the intervals.

    Raises:
        InputError: too many factors, a reference that does not exist, or no optimum.
    """
    factors = counts.factors
    if not 0 < factors <= MOST_FACTORS:
        raise InputError(
            f"{factors:,} bias factors", field="factor", expected=f"1 to {MOST_FACTORS:,}"
        )
    for name, value, known in (("form", form, FORMS), ("errors", errors, ERRORS)):
        if value not in known:
            raise InputError(repr(value), field=name, expected=nearest(value, known))
    if not 0 <= reference < factors:
        raise InputError(f"{reference}", field="reference", expected=f"in [0, {factors})")
    told = counts.where()
    reason = _reasons(counts, told, reference)
    if form == "additive":
        told = told.where(unsure(told))
    if design is None:
        together = strong_components(told, form)
        inside = together == together[reference]
        reason[~inside & (reason == "")] = ORDERED
        told = told.where(inside[told.factor])
        if form == "additive":
            told = told.where(unsure(told))
    theta, moments = _maximise(told, FORMS[form], design)
    blocks = Blocks(by_pair(told, moments.weight), told.cluster)
    root = inverse_root(moments.information, design)
    subtract = contrasts(factors, reference)
    resistance = ((subtract @ root) ** 2).sum(1)
    if errors == "information":
        covariance, queries = root @ root.T, np.full(factors, np.inf)
    else:
        scores = coo_array(
            (told.clicks - moments.expected, (told.cluster[told.pair], told.factor)),
            shape=(blocks.clusters, factors),
        ).tocsr()
        own = inverse_root(blocks.laplacian(), design)
        covariance = sandwich(blocks, scores, own, errors, bread=root)
        queries = blocks.effective(own @ (subtract @ own).T)
    reason[(resistance > MOST_VARIANCE) & (reason == "")] = ORDERED
    reason[reference] = ""
    return as_curve(
        counts.names,
        theta - theta[reference],
        subtract @ covariance @ subtract.T,
        information=moments.information,
        resistance=resistance,
        queries=queries,
        reason=reason,
        reference=reference,
        level=level,
    )


NEVER = "never shown"
APART = "no document was shown both here and at the reference, nor by way of other factors"
UNCLICKED = "no click on a document that links it to the reference"
ORDERED = "documents that link it to the reference were clicked on one side only"


def _reasons(counts: PairCounts, told: PairCounts, reference: int) -> np.ndarray:
    """[K] why a factor has no estimate, as far as exposure tells; '' otherwise."""
    clicked = components(told.pair, told.factor, counts.factors)
    reason = np.full(counts.factors, "", object)
    reason[clicked != clicked[reference]] = UNCLICKED
    reason[counts.component != counts.component[reference]] = APART
    reason[counts.shown == 0] = NEVER
    return reason


def unsure(told: PairCounts) -> np.ndarray:
    """[rows] whether their pair has impressions without click: otherwise odds say nothing of it."""
    left = np.bincount(told.pair, told.impressions - told.clicks, len(told.cluster))
    return (left > 0)[told.pair]


def product_moments(told: PairCounts, theta: np.ndarray) -> Moments:
    """The multinomial of a pair's clicks: expected C_d p_dk, which are the weights too."""
    share = told.impressions * np.exp(theta)[told.factor]
    starts = told.starts
    total = np.add.reduceat(share, starts)
    clicks = np.add.reduceat(told.clicks, starts)
    expected = share * (clicks / total)[told.pair]
    likelihood = told.clicks @ theta[told.factor] - clicks @ np.log(total)
    laplacian = Blocks(by_pair(told, expected), told.cluster).laplacian()
    return Moments(likelihood, expected, expected, laplacian)


FORMS = {"product": product_moments, "additive": logit_moments}


def by_pair(told: PairCounts, weight: np.ndarray) -> csr_array:
    bounds = np.append(told.starts, len(told.pair))
    return csr_array((weight, told.factor, bounds), shape=(len(told.cluster), told.factors))


def _maximise(told: PairCounts, form, design: np.ndarray | None) -> tuple[np.ndarray, Moments]:
    """[K] theta at the maximum, by Newton's method from equal ones; and the moments there."""
    theta, nothing = np.zeros(told.factors), np.zeros(0)
    if not len(told.pair):
        return theta, Moments(0, nothing, nothing, np.zeros((told.factors,) * 2))
    moments = form(told, theta)
    for _ in range(ITERATIONS):
        score = np.bincount(told.factor, told.clicks - moments.expected, told.factors)
        root = inverse_root(moments.information, design)
        step = root @ (root.T @ score)
        # Newton's decrement: twice what is left to gain in likelihood.
        if score @ step < TOLERANCE:
            return theta, moments
        for halving in range(40):
            moved = theta + step / 2**halving
            reached = form(told, moved)
            if reached.likelihood >= moments.likelihood - 1e-12 * abs(moments.likelihood):
                break
        theta, moments = moved, reached
    raise InputError(
        f"no optimum after {ITERATIONS} Newton steps", field="clicks", expected="a finite optimum"
    )

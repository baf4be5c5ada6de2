"""Losses of pages against plain loops in double precision, their gradients, and Rax."""

from functools import partial
from itertools import product
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rax
from rax.utils import normalize_probabilities
from scipy.optimize import approx_fprime
from scipy.special import expit, log_softmax, softmax

from twotowers.losses.listwise import Normalised, attention_rank_loss, dual_losses, softmax_loss
from twotowers.losses.pairwise import lambda_rank_loss, pairwise_debiasing_loss, ratio_penalty
from twotowers.losses.pointwise import (
    clipped_weights,
    inverse_propensity_loss,
    regression_em_loss,
    sigmoid_loss,
)

PAGES, PLACES = 9, 5
RNG = np.random.default_rng(7)
WHERE = RNG.random((PAGES, PLACES)) < 0.8  # with gaps, also in the first place
WHERE[0], WHERE[1] = True, False  # a full page, and one without documents
SCORES, BIAS = RNG.normal(size=(2, PAGES, PLACES))
CLICKS = (RNG.random((PAGES, PLACES)) < 0.3) & WHERE
CLICKS[2] = False
CLICKS[0] = [0, 1, 0, 0, 1]
GRADES = RNG.integers(0, 5, (PAGES, PLACES))
WEIGHTS = RNG.uniform(1, 10, (PAGES, PLACES))
POSITIVE, NEGATIVE = RNG.uniform(0.3, 3, (2, PAGES, PLACES))
CLOSE = {"rtol": 0, "atol": 1e-6}


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


# Plain versions: one page, the documents that it shows, loops.


def plain_sigmoid(f, c):
    terms = [
        -ci * np.log(expit(fi)) - (1 - ci) * np.log(expit(-fi)) for fi, ci in zip(f, c, strict=True)
    ]
    return np.mean(terms) if len(terms) else 0.0


def plain_ips(f, c, w):
    terms = []
    for fi, ci, wi in zip(f, c, w, strict=True):
        p = np.maximum(expit([fi, -fi]), 1e-9)
        terms.append(-wi * ci * np.log(p[0]) - (1 - wi * ci) * np.log(p[1]))
    return np.mean(terms) if len(terms) else 0.0


def plain_softmax(f, c, w, normalised="after", unclicked="uniform"):
    if not len(f):
        return 0.0
    y = w * c
    if normalised != "not":
        if c.sum():
            y = y / (y.sum() if normalised == "after" else c.sum())
        else:
            y = np.full(len(f), 1 / len(f) if unclicked == "uniform" else 0.0)
    return -sum(y * log_softmax(f))


def plain_attention(f, t):
    return -sum(softmax(t) * log_softmax(f)) if len(f) else 0.0


def to_first(ratios, highest=10):
    return np.minimum(ratios[0] / ratios, highest)


def ranks_of(f):
    return np.argsort(np.argsort(-f, kind="stable"), kind="stable") + 1


def plain_pairs(f, y, weigh, size=PLACES):
    """Mean over pairs (i, j) of weigh(i, j, n |D_i - D_j|) ln(1 + exp(f_j - f_i))."""
    discount, terms = 1 / np.log2(1 + ranks_of(f)), []
    for i, j in product(range(len(f)), repeat=2):
        if y[i] > y[j]:
            swap = size * abs(discount[i] - discount[j])
            terms.append(weigh(i, j, swap) * np.log1p(np.exp(f[j] - f[i])))
    return np.mean(terms) if terms else 0.0


def plain_lambda(f, y):
    return plain_pairs(f, y, lambda i, j, swap: swap * abs(2.0 ** y[i] - 2.0 ** y[j]))


def on_pages(plain, *columns, **options):
    """A plain loss of each page, of the documents that it shows."""
    return np.array(
        [
            plain(*(column[page][WHERE[page]] for column in columns), **options)
            for page in range(PAGES)
        ]
    )


def check(loss, plain, at=SCORES):
    """Values of all pages, and the gradient of their weighted sum, to 1e-6."""
    # Different factors for pages, so that no gradient can hide in another's.
    factors = np.linspace(1, 2, PAGES)

    @jax.jit
    def values_and_gradient(scores):
        return loss(scores), jax.grad(lambda f: (factors * loss(f)).sum())(scores)

    found, gradient = values_and_gradient(jnp.asarray(at))
    np.testing.assert_allclose(found, plain(at), **CLOSE)
    slope = approx_fprime_central(lambda flat: (factors * plain(flat.reshape(at.shape))).sum(), at)
    np.testing.assert_allclose(gradient, slope, **CLOSE)


def approx_fprime_central(function, at, step=1e-5):
    flat = at.ravel()
    forward, backward = (approx_fprime(flat, function, side) for side in (step, -step))
    return ((forward + backward) / 2).reshape(at.shape)


def with_rax(loss, *columns, **options):
    """A loss of Rax of each page, reduced as the published code reduces it."""
    return np.array(
        [
            loss(
                *(column[page] for column in columns),
                where=WHERE[page],
                **{
                    name: each[page] if isinstance(each, np.ndarray) else each
                    for name, each in options.items()
                },
            )
            for page in range(PAGES)
        ]
    )


LABELS = CLICKS.astype(float)


def test_sigmoid():
    loss = partial(sigmoid_loss, clicks=CLICKS, where=WHERE)
    check(loss, lambda f: on_pages(plain_sigmoid, f, LABELS))
    theirs = with_rax(rax.pointwise_sigmoid_loss, SCORES, LABELS)
    np.testing.assert_allclose(loss(SCORES), theirs, **CLOSE)


def test_inverse_propensities():
    weights = np.asarray(clipped_weights(RNG.uniform(0, 1, (PAGES, PLACES)), highest=10))
    assert weights.max() <= 10
    assert weights.min() >= 1
    loss = partial(inverse_propensity_loss, clicks=CLICKS, where=WHERE, weights=weights)
    check(loss, lambda f: on_pages(plain_ips, f, LABELS, weights))
    unweighted = inverse_propensity_loss(SCORES, CLICKS, where=WHERE)
    np.testing.assert_allclose(unweighted, sigmoid_loss(SCORES, CLICKS, where=WHERE), **CLOSE)


@pytest.mark.parametrize("score", [-500.0, 500.0])
def test_inverse_propensities_have_a_floor(score):
    value, slope = jax.value_and_grad(
        lambda f: inverse_propensity_loss(f, jnp.array([1]), weights=jnp.array([10.0])).sum()
    )(jnp.array([score]))
    # -(w c) ln p - (1 - w c) ln(1 - p), where one probability is 1 and the other the floor.
    floored = np.log(1e-9)
    np.testing.assert_allclose(value, -10 * floored if score < 0 else 9 * floored, rtol=1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-12)


def test_regression_em_has_the_gradient_of_the_likelihood():
    def likelihood(f, b):
        chance = jax.nn.sigmoid(f) * jax.nn.sigmoid(b)
        losses = -jnp.where(CLICKS, jnp.log(chance), jnp.log1p(-chance))
        return jnp.where(WHERE, losses, 0).sum(-1) / jnp.maximum(WHERE.sum(-1), 1)

    def ours(f, b):
        return regression_em_loss(f, b, CLICKS, where=WHERE)

    for argument in (0, 1):
        one, other = (
            jax.grad(lambda *at, loss=loss: loss(*at).sum(), argument)(SCORES, BIAS)
            for loss in (likelihood, ours)
        )
        np.testing.assert_allclose(one, other, **CLOSE)
    # The values differ by the entropy of the hidden events, given no click: three outcomes.
    r, e = expit(SCORES), expit(BIAS)
    outcomes = np.stack([r * (1 - e), e * (1 - r), (1 - r) * (1 - e)]) / (1 - r * e)
    entropy = np.where(CLICKS, 0, -(outcomes * np.log(outcomes)).sum(0))
    apart = np.array([entropy[p][WHERE[p]].mean() if WHERE[p].any() else 0 for p in range(PAGES)])
    np.testing.assert_allclose(ours(SCORES, BIAS) - likelihood(SCORES, BIAS), apart, **CLOSE)


@pytest.mark.parametrize("normalised", get_args(Normalised))
@pytest.mark.parametrize(("unclicked", "weights"), [("uniform", WEIGHTS), ("nothing", None)])
def test_softmax(normalised, unclicked, weights):
    options = {"normalised": normalised, "unclicked": unclicked}
    given = np.ones_like(SCORES) if weights is None else weights
    check(
        partial(softmax_loss, clicks=CLICKS, where=WHERE, weights=weights, **options),
        lambda f: on_pages(plain_softmax, f, LABELS, given, **options),
    )


@pytest.mark.parametrize(
    ("normalised", "label_fn"),
    [("after", normalize_probabilities), ("not", lambda labels, where: labels)],
)
def test_softmax_against_rax(normalised, label_fn):
    theirs = with_rax(rax.softmax_loss, SCORES, LABELS, weights=WEIGHTS, label_fn=label_fn)
    ours = softmax_loss(SCORES, CLICKS, where=WHERE, weights=WEIGHTS, normalised=normalised)
    np.testing.assert_allclose(ours, theirs, **CLOSE)


def weights_at(logits, page):
    return to_first(softmax(logits[page][WHERE[page]])) if WHERE[page].any() else np.ones(0)


@pytest.mark.parametrize("normalised", get_args(Normalised))
def test_dual(normalised):
    def plain(f, b):
        """Weights are constants, so those at the logits where the gradient is taken."""
        rows = []
        for page in range(PAGES):
            own = [each[page][WHERE[page]] for each in (f, b, LABELS)]
            rows.append((
                plain_softmax(own[0], own[2], weights_at(BIAS, page), normalised),
                plain_softmax(own[1], own[2], weights_at(SCORES, page), normalised),
            ))  # fmt: skip
        return np.array(rows).T

    given = {"where": WHERE, "normalised": normalised}
    for part in (0, 1):
        check(
            lambda f, part=part: dual_losses(f, BIAS, CLICKS, **given)[part],
            lambda f, part=part: plain(f, BIAS)[part],
        )
        check(
            lambda b, part=part: dual_losses(SCORES, b, CLICKS, **given)[part],
            lambda b, part=part: plain(SCORES, b)[part],
            BIAS,
        )


def test_dual_weights_are_clipped():
    f, b = jnp.zeros(2), jnp.array([0.0, -50.0])
    ranking, _ = dual_losses(f, b, jnp.array([0, 1]), highest=4, normalised="not")
    np.testing.assert_allclose(ranking, 4 * np.log(2), **CLOSE)


def test_attention_rank():
    targets = np.broadcast_to(1 / np.arange(1, PLACES + 1), SCORES.shape)
    check(
        partial(attention_rank_loss, targets=targets, where=WHERE),
        lambda f: on_pages(plain_attention, f, targets),
    )
    # Its optimum is the targets plus a constant per page.
    slope = jax.grad(lambda f: attention_rank_loss(f, targets, where=WHERE).sum())(targets + 3.0)
    np.testing.assert_allclose(slope, 0, **CLOSE)


@pytest.mark.parametrize("labels", [LABELS, GRADES])
def test_lambda_rank(labels):
    loss = partial(lambda_rank_loss, labels=labels, where=WHERE)
    check(loss, lambda f: on_pages(plain_lambda, f, labels))
    for scores in (SCORES, np.round(SCORES)):  # with ties, too
        theirs = with_rax(
            rax.pairwise_logistic_loss, scores, labels, lambdaweight_fn=rax.dcg_lambdaweight
        )
        np.testing.assert_allclose(loss(scores), theirs, **CLOSE)


# Pairwise debiasing.


def plain_debiasing(form):
    """All pages: ratios in weights and scores in the examination part are constants."""

    def whole(f, positive, negative):
        ranking, examination, terms = np.zeros(PAGES), np.zeros(PAGES), []
        for page in range(PAGES):
            shown = WHERE[page]
            fi, c, at, p, n = (
                each[page][shown] for each in (f, LABELS, SCORES, positive, negative)
            )
            if not shown.any():
                continue
            wp, wn = to_first(POSITIVE[page][shown]), to_first(NEGATIVE[page][shown])
            if form == "paper":
                ranking[page] = plain_pairs(fi, c, lambda i, j, s, p=p, n=n: s / (p[i] * n[j]))
                continue
            if form == "corrected":
                ranking[page] = plain_pairs(fi, c, lambda i, j, s, wp=wp, wn=wn: s * wp[i] * wn[j])
                examination[page] = plain_pairs(at, c, lambda i, j, s, p=p, n=n: 1 / (p[i] * n[j]))
                continue
            gains = c / (wp * wn)
            ideal = sum(np.sort(gains)[::-1] / np.log2(2 + np.arange(len(gains)))) or 1
            ranking[page] = plain_pairs(
                fi, c, lambda i, j, s, g=gains / ideal: s * abs(g[i] - g[j])
            )
            terms += [
                np.log1p(np.exp(at[j] - at[i])) / (p[i] * n[i])
                for i, j in product(range(len(c)), repeat=2)
                if c[i] > c[j]
            ]
        return ranking + (np.mean(terms) if form == "published" else examination)

    return whole


@pytest.mark.parametrize("form", ["published", "paper", "corrected"])
def test_pairwise_debiasing(form):
    plain = plain_debiasing(form)

    def ours(f, positive, negative):
        return pairwise_debiasing_loss(f, CLICKS, positive, negative, where=WHERE, form=form)

    check(lambda f: ours(f, POSITIVE, NEGATIVE), lambda f: plain(f, POSITIVE, NEGATIVE))
    for place, at in ((0, POSITIVE), (1, NEGATIVE)):

        def both(changed, place=place):
            return (changed, NEGATIVE) if place == 0 else (POSITIVE, changed)

        check(
            lambda t, both=both: ours(SCORES, *both(t)),
            lambda t, both=both: plain(SCORES, *both(t)),
            at,
        )


def test_pairwise_debiasing_is_what_rax_makes_of_the_published_code():
    """The published function, of Rax's parts: weights in the gains of normalised DCG weights."""
    first = WHERE.argmax(-1)[:, None]
    factors = 1.0
    for ratios in (POSITIVE, NEGATIVE):
        factors = factors * np.clip(np.take_along_axis(ratios, first, -1) / ratios, 0, 10)

    def lambdas(scores, labels, *, where, segments, weights):
        return rax.dcg_lambdaweight(
            scores, labels, where=where, weights=lambdas.factors, normalize=True
        )

    ranking = []
    for page in range(PAGES):
        lambdas.factors = 1 / factors[page]
        ranking.append(
            rax.pairwise_logistic_loss(
                SCORES[page], LABELS[page], where=WHERE[page], lambdaweight_fn=lambdas
            )
        )
    examination = rax.pairwise_logistic_loss(
        SCORES, LABELS, where=WHERE, weights=1 / (POSITIVE * NEGATIVE)
    )
    columns = SCORES, CLICKS, POSITIVE, NEGATIVE
    ours = pairwise_debiasing_loss(
        *(jnp.asarray(each) for each in columns), where=WHERE, form="published"
    )
    np.testing.assert_allclose(ours, np.array(ranking) + examination, **CLOSE)


ANY_SHAPE = [
    partial(sigmoid_loss, SCORES, CLICKS, where=WHERE),
    partial(inverse_propensity_loss, SCORES, CLICKS, where=WHERE, weights=WEIGHTS),
    partial(regression_em_loss, SCORES, BIAS, CLICKS, where=WHERE),
    partial(softmax_loss, SCORES, CLICKS, where=WHERE, weights=WEIGHTS, normalised="before"),
    partial(dual_losses, SCORES, BIAS, CLICKS, where=WHERE),
    partial(attention_rank_loss, SCORES, BIAS, where=WHERE),
    partial(lambda_rank_loss, SCORES, GRADES, where=WHERE),
    *(partial(pairwise_debiasing_loss, SCORES, CLICKS, POSITIVE, NEGATIVE, where=WHERE, form=form)
      for form in ("paper", "corrected")),
]  # fmt: skip


@pytest.mark.parametrize("loss", ANY_SHAPE, ids=lambda loss: loss.func.__name__)
def test_axes_in_front_are_pages(loss):
    def shaped(*shape):
        given = {
            name: each.reshape(*shape, PLACES) if isinstance(each, np.ndarray) else each
            for name, each in loss.keywords.items()
        }
        return np.asarray(loss.func(*(each.reshape(*shape, PLACES) for each in loss.args), **given))

    pages = shaped(PAGES)
    np.testing.assert_allclose(shaped(3, 3).reshape(pages.shape), pages, **CLOSE)


def test_penalty_of_ratios():
    # Two pages: the largest sum of a column; a table: the sum.
    assert ratio_penalty(jnp.array([[1.0, 0.5], [0.25, 3.0]]), form="published") == 3.5
    assert ratio_penalty(jnp.array([1.0, 0.5, 0.2])) == pytest.approx(1.7)

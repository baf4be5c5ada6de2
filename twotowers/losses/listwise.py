"""Listwise losses of result pages: they compare a page's documents with each other.

See `twotowers.losses.pointwise` for the shapes.
"""

from typing import Literal

import jax
import jax.numpy as jnp

ABSENT = -1e9
"""The logit of documents and positions that a list lacks: their share of a softmax is 0."""
Normalised = Literal["not", "after", "before"]
"""When a page's clicks are divided by their sum: not at all, after weights or before weights."""
Unclicked = Literal["uniform", "nothing"]
"""What a page without clicks adds to a normalised loss."""


def softmax_loss(
    scores: jax.Array,
    clicks: jax.Array,
    *,
    where: jax.Array | None = None,
    weights: jax.Array | None = None,
    normalised: Normalised = "not",
    unclicked: Unclicked = "uniform",
) -> jax.Array:
    """Softmax cross-entropy [...] of pages: -sum of y ln softmax(f), f [..., documents].

    The target y of a document with click c and weight w, 1 if None, is

        w c                 not normalised, as in Ai et al. 2018: a page weighs as its clicks do
        w c / sum of w c    normalised after weights, as the rerankers of Hager (2026) have it
        w c / sum of c      normalised before weights

    After weights, w cancels on pages with one click. There inverse propensity weights change
    nothing. A page without clicks has y = 1 / documents in the last two cases if `unclicked` is
    "uniform". It then pulls its scores together (Hager 2026, Eq. 3.2 and 3.5). The loss is 0 for
    "nothing", and of a page without documents.

    Example:
        >>> clicks, weights = jnp.array([0, 1, 0, 1]), jnp.array([1.0, 2, 3, 6])
        >>> for way in ("not", "after", "before"):
        ...     loss = softmax_loss(jnp.zeros(4), clicks, weights=weights, normalised=way)
        ...     print(way, loss.round(4))
        not 11.0904
        after 1.3863
        before 5.5452
    """
    where = jnp.ones(scores.shape, bool) if where is None else where
    clicks = jnp.where(where, jnp.asarray(clicks, scores.dtype), 0)
    target = clicks if weights is None else clicks * weights
    if normalised != "not":
        total = (target if normalised == "after" else clicks).sum(-1, keepdims=True)
        shown = jnp.maximum(where.sum(-1, keepdims=True), 1)
        none = where / shown if unclicked == "uniform" else 0.0
        target = jnp.where(total > 0, target / jnp.where(total > 0, total, 1), none)
    return -(target * jax.nn.log_softmax(jnp.where(where, scores, ABSENT))).sum(-1)


def ratios_to_first(logits: jax.Array, *, where: jax.Array, highest: float) -> jax.Array:
    """p_first / p for p = softmax(logits): at most `highest`, and constant in a gradient.

    "First" is the first document shown, at whatever position it stands.

    Example:
        >>> shown = jnp.array([False, True, True])
        >>> ratios_to_first(jnp.log(jnp.array([9.0, 4, 2])), where=shown, highest=10)[1:].tolist()
        [1.0, 2.0]
    """
    first = jnp.take_along_axis(logits, where.argmax(-1, keepdims=True), axis=-1)
    # The softmax's denominator cancels.
    ratio = jnp.exp(jnp.minimum(first - logits, jnp.log(highest)))
    return jax.lax.stop_gradient(jnp.where(where, ratio, 1))


def dual_losses(
    relevance: jax.Array,
    examination: jax.Array,
    clicks: jax.Array,
    *,
    where: jax.Array | None = None,
    highest: float = 10.0,
    normalised: Normalised = "not",
) -> tuple[jax.Array, jax.Array]:
    """The two losses of the dual learning algorithm (Ai et al. 2018; Hager 2026, Eq. 3.6).

    With r = softmax(f) and o = softmax(b) over the documents of a page, [..., documents] each, and
    index 1 for the first document shown,

        ranking:       `softmax_loss` of f with weights o_1 / o
        examination:   `softmax_loss` of b with weights r_1 / r

    Weights are at most `highest`, and constants in the gradient. The method minimises the sum.
    Ai et al. do not normalise. Hager (2026) does after weights.

    Example:
        >>> f, b = jnp.zeros(2), jnp.log(jnp.array([0.8, 0.2]))
        >>> ranking, examination = dual_losses(f, b, jnp.array([0, 1]))
        >>> print(f"{ranking:.4f} {examination:.4f}")  # 4 ln 2, ln 5
        2.7726 1.6094
    """
    where = jnp.ones(relevance.shape, bool) if where is None else where

    def one(scores, other):
        ratios = ratios_to_first(other, where=where, highest=highest)
        return softmax_loss(scores, clicks, where=where, weights=ratios, normalised=normalised)

    return one(relevance, examination), one(examination, relevance)


def attention_rank_loss(
    scores: jax.Array, targets: jax.Array, *, where: jax.Array | None = None
) -> jax.Array:
    """Attention rank loss, -sum of softmax(t) ln softmax(s) (Ai et al. 2018, "Learning a Deep
    Listwise Context Model").

    Its optimum is s = t + a constant per page. So logits fit targets, and not their logarithms.
    Scores and targets are [..., documents]; a page without documents has the loss 0.

    Example:
        >>> print(attention_rank_loss(jnp.zeros(2), jnp.array([1.0, 0.5])).round(4))  # ln 2
        0.6931
    """
    where = jnp.ones(scores.shape, bool) if where is None else where
    aims, logs = (jax.nn.log_softmax(jnp.where(where, each, ABSENT)) for each in (targets, scores))
    return -jnp.where(where, jnp.exp(aims) * logs, 0).sum(-1)

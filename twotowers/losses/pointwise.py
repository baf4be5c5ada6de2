"""Pointwise losses of result pages: a term per document, whatever else the page shows.

Every loss of this file, and of `listwise` and `pairwise`, is a pure function of padded arrays
[..., documents]. It gives a number per page: the mean over the documents shown. `where` is True
where a page shows a document. It may have gaps, which stand for results that are no documents.
"""

import jax
import jax.numpy as jnp

from twotowers.losses.cells import softplus

FLOOR = 1e-9
"""The smallest probability whose logarithm `inverse_propensity_loss` takes, as published."""


def mean_shown(values: jax.Array, where: jax.Array | None) -> jax.Array:
    """[...] mean over the last axis where `where` is True; 0 where it is False throughout.

    Example:
        >>> mean_shown(jnp.array([1.0, 5.0, 3.0]), jnp.array([True, False, True])).item()
        2.0
    """
    if where is None:
        return values.mean(-1)
    return jnp.where(where, values, 0).sum(-1) / jnp.maximum(where.sum(-1), 1)


def clipped_weights(propensities: jax.Array, *, highest: float = 10.0) -> jax.Array:
    """Inverse propensities, at most `highest`: w = min(1 / e, highest), for e = 0 too.

    10 is the chapter's clip at tau = .1.

    Example:
        >>> clipped_weights(jnp.array([1.0, 0.5, 0.05])).tolist()
        [1.0, 2.0, 10.0]
    """
    return 1 / jnp.maximum(propensities, 1 / highest)


def sigmoid_loss(
    scores: jax.Array, clicks: jax.Array, *, where: jax.Array | None = None
) -> jax.Array:
    """Binary cross-entropy of clicks: mean of -[c ln s(f) + (1 - c) ln(1 - s(f))], in nats.

    It is the naive loss if f is a relevance score, and that of two towers if f is relevance plus
    bias (Hager 2026, Eq. 3.2 and 3.3). c may be a posterior in [0, 1]. Arguments are [...,
    documents].

    Example:
        >>> print(sigmoid_loss(jnp.array([0.0, 2.0]), jnp.array([0, 1])).round(4))
        0.41
    """
    return mean_shown(softplus(scores) - jnp.asarray(clicks, scores.dtype) * scores, where)


def inverse_propensity_loss(
    scores: jax.Array,
    clicks: jax.Array,
    *,
    where: jax.Array | None = None,
    weights: jax.Array | None = None,
) -> jax.Array:
    """Pointwise inverse propensity scoring: mean of -[w c ln s(f) + (1 - w c) ln(1 - s(f))].

    A click with w > 1 has a negative second term, so the loss has no lower bound. As published,
    both probabilities are at least `FLOOR`. Below it, the gradient is 0 (Bekker et al. 2019; Saito
    et al. 2020, Eq. 8; Hager 2026, Eq. 3.5). Weights are such as `clipped_weights`, 1 if None;
    arguments are [..., documents].

    Example:
        >>> loss = inverse_propensity_loss(
        ...     jnp.array([0.0, 2.0]), jnp.array([0, 1]), weights=jnp.array([1.0, 4.0])
        ... )
        >>> print(f"{loss:.2f}")
        -2.59
    """
    # ln s(f) from softplus keeps its digits where s(f) is near 1.
    lowest = jnp.log(FLOOR)
    chosen, passed = (jnp.maximum(-softplus(each), lowest) for each in (-scores, scores))
    weighted = jnp.asarray(clicks, scores.dtype) * (1.0 if weights is None else weights)
    return mean_shown(-(weighted * chosen + (1 - weighted) * passed), where)


def regression_em_loss(
    relevance: jax.Array,
    examination: jax.Array,
    clicks: jax.Array,
    *,
    where: jax.Array | None = None,
) -> jax.Array:
    """Regression EM (Wang et al. 2018): cross-entropy to the posteriors of both hidden events.

        r = c + (1 - c) s(f - softplus(b)),    e = c + (1 - c) s(b - softplus(f))

    are P(relevant | c) and P(examined | c) of a position-based model with P(click) = s(f) s(b). The
    loss is the mean of BCE(f, r) + BCE(b, e), and r and e are constants in its gradient. So the
    gradient is that of the model's negative log-likelihood (Fisher's identity), and the value is
    larger, by the entropy of the joint posterior (Hager 2026, Eq. 3.4). Arguments are [...,
    documents], as in `sigmoid_loss`.

    Example:
        >>> logits = jnp.array([0.0]), jnp.array([0.0])
        >>> print(regression_em_loss(*logits, jnp.array([1])).round(4))  # 2 ln 2
        1.3863
    """
    clicks = jnp.asarray(clicks, relevance.dtype)

    def posterior(one, other):
        chance = clicks + (1 - clicks) * jax.nn.sigmoid(one - softplus(other))
        return jax.lax.stop_gradient(chance)

    return sigmoid_loss(relevance, posterior(relevance, examination), where=where) + sigmoid_loss(
        examination, posterior(examination, relevance), where=where
    )

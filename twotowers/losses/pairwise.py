"""Pairwise losses of result pages: LambdaRank, and pairwise debiasing in three forms.

See `twotowers.losses.pointwise` for the shapes. A pair (i, j) is two documents of a page whose
labels are y_i > y_j. In [..., documents, documents] arrays, i is the first of both axes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from twotowers.losses.cells import softplus

HIGHEST = 10.0
"""The largest weight of pairwise debiasing."""


class Pairs(NamedTuple):
    """The pairs of pages, each [..., documents, documents].

    Attributes:
        losses: ln(1 + exp(f_j - f_i)).
        swaps: n |D(rank_i) - D(rank_j)| with D = 1 / log2(1 + rank) and n documents per padded
            page. Ranks are those of scores; of equal scores the first ranks higher.
        valid: bool, y_i > y_j, and both are shown.
    """

    losses: jax.Array
    swaps: jax.Array
    valid: jax.Array


def pairs_of(scores: jax.Array, labels: jax.Array, where: jax.Array | None = None) -> Pairs:
    """The pairs of pages. Arguments as in `lambda_rank_loss`.

    Example:
        >>> print(pairs_of(jnp.array([0.0, 1.0]), jnp.array([1, 0])).swaps.round(4))
        [[0.     0.7381]
         [0.7381 0.    ]]
    """
    size = scores.shape[-1]
    where = jnp.ones(scores.shape, bool) if where is None else where
    scores = jnp.where(where, scores, 0)
    ahead, behind = scores[..., :, None], scores[..., None, :]
    earlier = jnp.arange(size)[:, None] > jnp.arange(size)
    beaten = (behind > ahead) | ((behind == ahead) & earlier)
    rank = 1 + (beaten & where[..., None, :]).sum(-1)
    discount = 1 / jnp.log2(1.0 + rank).astype(scores.dtype)
    return Pairs(
        losses=softplus(behind - ahead),
        swaps=size * jnp.abs(discount[..., :, None] - discount[..., None, :]),
        valid=(labels[..., :, None] > labels[..., None, :])
        & where[..., :, None]
        & where[..., None, :],
    )


def mean_valid(values: jax.Array, pairs: Pairs) -> jax.Array:
    """[...] mean over the pairs of each page; 0 for a page without pairs."""
    total = jnp.where(pairs.valid, values, 0).sum((-2, -1))
    return total / jnp.maximum(pairs.valid.sum((-2, -1)), 1)


def lambda_rank_loss(
    scores: jax.Array, labels: jax.Array, *, where: jax.Array | None = None
) -> jax.Array:
    """LambdaRank: the pairwise logistic loss, weighted by what a swap changes in DCG.

        mean over pairs of n |D_i - D_j| (2^y_i - 2^y_j) ln(1 + exp(f_j - f_i))

    D is the discount 1 / log2(1 + rank) of the page sorted by f. It is a constant in the gradient.
    n is the length of the padded page, as in Rax. Labels y are clicks, whose gain 2^y - 1 is y, or
    grades. DCG is not normalised (Burges et al. 2006; Hager 2026, Section 3.4). Arguments are [...,
    documents]; a page without pairs has the loss 0.

    Example:
        >>> loss = lambda_rank_loss(jnp.array([0.0, 1.0]), jnp.array([1, 0]))
        >>> print(loss.round(4))  # 2 (1 - .6309) ln(1 + e)
        0.9694
    """
    pairs = pairs_of(scores, labels, where)
    gains = 2 ** jnp.asarray(labels, scores.dtype)
    values = pairs.losses * pairs.swaps * (gains[..., :, None] - gains[..., None, :])
    return mean_valid(values, pairs)


def pairwise_debiasing_loss(
    scores: jax.Array,
    clicks: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    *,
    where: jax.Array | None = None,
    form: str = "corrected",
) -> jax.Array:
    """Pairwise debiasing (Hu et al. 2019): LambdaRank with learnt ratios of clicks and non-clicks.

    The assumption is P(c = 1) = t+_k P(relevant), and P(c = 0) = t-_k P(irrelevant), at position k.
    With the logistic loss l_ij of `lambda_rank_loss`, its swap s_ij = n |D_i - D_j|, and a pair's
    clicked document i and unclicked document j, a page's loss is the sum of up to two parts:

    - "paper" (Hu et al. 2019, Section 4; Hager 2026, Eq. 3.7) minimises one function of f, t+, t-:
      mean of s_ij l_ij / (t+_i t-_j). Ratios are divided by those of the first position.
    - "corrected" keeps the two parts of the code. Ranking: mean of w_i v_j s_ij l_ij with
      w_i = min(t+_1 / t+_i, 10) and v_j = min(t-_1 / t-_j, 10), constants for f.
      Examination: mean of l_ij / (t+_i t-_j), with f constant.
    - "published" is the code. Both ratios are of the clicked document; ranking multiplies by them,
      1 / (w_i v_i), and divides the weighted gains by their ideal DCG. So on a page with one
      click its ratios cancel. Examination is a mean over all pairs of the batch, not of a page.

    The penalties on t+ and t- are not here: see `ratio_penalty`. Arguments are [..., documents], of
    "published" [pages, documents]; `positive` and `negative` are t+ and t- > 0 of a document's
    position.

    Example:
        >>> f, c, t = jnp.array([0.0, 1.0]), jnp.array([0, 1]), jnp.array([1.0, 0.5])
        >>> for form in ("published", "paper", "corrected"):
        ...     (loss,) = pairwise_debiasing_loss(*(x[None] for x in (f, c, t, t)), form=form)
        ...     print(f"{form} {loss:.3f}")
        published 1.484
        paper 0.462
        corrected 1.089
    """
    where = jnp.ones(scores.shape, bool) if where is None else where
    pairs = pairs_of(scores, clicks, where)
    first = where.argmax(-1, keepdims=True)

    def weights(ratios):
        given = jnp.take_along_axis(ratios, first, axis=-1) / ratios
        return jax.lax.stop_gradient(jnp.where(where, given.clip(0, HIGHEST), 1))

    if form == "paper":
        both = positive[..., :, None] * negative[..., None, :]
        return mean_valid(pairs.losses * pairs.swaps / both, pairs)
    fixed = jax.lax.stop_gradient(pairs.losses)
    if form == "corrected":
        both = positive[..., :, None] * negative[..., None, :]
        weighted = weights(positive)[..., :, None] * weights(negative)[..., None, :]
        return mean_valid(pairs.losses * pairs.swaps * weighted + fixed / both, pairs)
    gains = jnp.where(where, jnp.asarray(clicks, scores.dtype), 0)
    gains = gains / (weights(positive) * weights(negative))
    discount = 1 / jnp.log2(2.0 + jnp.arange(scores.shape[-1]))
    ideal = (-jnp.sort(-gains, axis=-1) * discount).sum(-1, keepdims=True)
    gains = gains / jnp.where(ideal > 0, ideal, 1)
    change = jnp.abs(gains[..., :, None] - gains[..., None, :])
    examined = jnp.where(pairs.valid, fixed / (positive * negative)[..., :, None], 0)
    examined = examined.sum() / jnp.maximum(pairs.valid.sum(), 1)
    return mean_valid(pairs.losses * pairs.swaps * change, pairs) + examined


def ratio_penalty(ratios: jax.Array, *, form: str = "corrected") -> jax.Array:
    """The L1 penalty on the ratios t of `pairwise_debiasing_loss`.

    Of "published", t is that of every place of a padded batch, [pages, documents]: the largest sum
    of a column, which is the code's L1 norm of a matrix. Of the other forms, it is that of the
    positions, [positions]: their sum.

    Example:
        >>> ratios = jnp.array([[1.0, 0.5], [1.0, 0.75]])
        >>> ratio_penalty(ratios, form="published").item(), ratio_penalty(ratios[0]).item()
        (2.0, 1.5)
    """
    return ratios.sum(0).max() if form == "published" else ratios.sum()

"""Negative log-likelihood of a click model's cells, from the model's own click probability.

`cell_losses` asks the model for its log-odds of a click, and for nothing else. Where a model has
a faster derivative, that is registered here as the model's own implementation; a test holds each
of them against the general one.
"""

from __future__ import annotations

from functools import singledispatch

import jax
import jax.numpy as jnp

from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased

LIMIT = 85.0
"""Logits whose exponential and its inverse are both float32, so that no 0 meets an infinity."""


@jax.custom_jvp
def softplus(logits: jax.Array) -> jax.Array:
    """ln(1 + e^z), stable for large |z|; its derivative is computed as one sigmoid.

    The same values as JAX's own without its care for infinities less infinities, in two thirds of
    the time; JAX's derivative goes through the logarithm and costs four times as much.
    """
    return jnp.maximum(logits, 0) + jnp.log1p(jnp.exp(-jnp.abs(logits)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


def click_losses(logits: jax.Array, shown: jax.Array, clicked: jax.Array) -> jax.Array:
    """-[c ln p + (n - c) ln(1 - p)] of n impressions and c clicks, by the log-odds of p.

    Args:
        logits: [...] log-odds of a click.
        shown: impressions, of a shape that broadcasts to the same.
        clicked: clicks, likewise.
    """
    # n softplus(z) - c z, without the logarithm of a sigmoid, which underflows for large |z|.
    return shown.astype(jnp.float32) * softplus(logits) - clicked.astype(jnp.float32) * logits


@singledispatch
def cell_losses(
    model, attraction: jax.Array, examination: jax.Array, shown: jax.Array, clicked: jax.Array
) -> jax.Array:
    """Negative log-likelihood of the clicks of each cell of a page.

    Args:
        model: a `CellModel`.
        attraction: [..., documents] logits.
        examination: [positions] logits; a model without that part does not read them.
        shown: [..., documents, positions] impressions.
        clicked: the same shape, clicks.

    Returns:
        [..., documents, positions].
    """
    return click_losses(cell_logits(model, attraction[..., None], examination), shown, clicked)


def cell_logits(model, attraction: jax.Array, examination: jax.Array) -> jax.Array:
    """The model's log-odds of a click, from those parts that it has."""
    parts = {"attraction": attraction, "examination": examination}
    return model.click_logit(**{name: parts[name] for name in model.parts})


@cell_losses.register
def _(model: Additive, attraction, examination, shown, clicked):
    return additive_losses(attraction, examination, shown, clicked)


@cell_losses.register
def _(model: PositionBased, attraction, examination, shown, clicked):
    return product_losses(attraction, examination, shown, clicked)


@jax.custom_jvp
def additive_losses(attraction, examination, shown, clicked) -> jax.Array:
    """The additive model's losses of cells, whose log-odds are attraction + examination.

    Its derivative takes an exponential per document and one per position instead of one per
    cell, which would be most of its cost. Both parts count as at most +-LIMIT there.
    """
    return click_losses(attraction[..., None] + examination, shown, clicked)


@additive_losses.defjvp
def _additive_losses_jvp(primals, tangents):
    attraction, examination, shown, clicked = primals
    odds = _inverse_exp(attraction)[..., None] * _inverse_exp(examination)
    expected = shown.astype(jnp.float32) / (1 + odds)
    moved = tangents[0][..., None] + tangents[1]
    return additive_losses(*primals), (expected - clicked.astype(jnp.float32)) * moved


def _inverse_exp(logits: jax.Array) -> jax.Array:
    return jnp.exp(-jnp.clip(logits, -LIMIT, LIMIT))


@jax.custom_jvp
def product_losses(attraction, examination, shown, clicked) -> jax.Array:
    """The position-based model's losses of cells, whose probability is s(a) s(b).

    With p = s(a) s(b), the derivative by a is -(c - n p) / (1 - p) s(-a), and by b the same with
    s(-b): sigmoids of documents and of positions, and none of cells.
    """
    logits = PositionBased().click_logit(attraction[..., None], examination)
    return click_losses(logits, shown, clicked)


@product_losses.defjvp
def _product_losses_jvp(primals, tangents):
    attraction, examination, shown, clicked = primals
    attracted, examined = jax.nn.sigmoid(attraction)[..., None], jax.nn.sigmoid(examination)
    ignored, unseen = jax.nn.sigmoid(-attraction)[..., None], jax.nn.sigmoid(-examination)
    # 1 - s(a) s(b) without a difference, which would lose all digits near 1.
    missed = jnp.maximum(ignored + attracted * unseen, jnp.finfo(jnp.float32).tiny)
    error = shown.astype(jnp.float32) * attracted * examined - clicked.astype(jnp.float32)
    moved = ignored * tangents[0][..., None] + unseen * tangents[1]
    return product_losses(*primals), error * (moved / missed)

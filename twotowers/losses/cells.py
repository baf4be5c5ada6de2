"""Negative log-likelihood of the cells of a click model.

`cell_losses` needs only the model's log-odds of a click. Models with a faster derivative register
an implementation of their own here. A test compares each of these with the general one.
"""

from functools import singledispatch

import jax
import jax.numpy as jnp

from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased

LIMIT = 85.0
"""Largest size of a logit z for which float32 holds both e^z and e^-z. Beyond it their product
would be 0 x infinity, which is NaN."""
SURE = 60.0
"""Largest logit z for which float32 holds 2^31 impressions times e^z."""


@jax.custom_jvp
def softplus(logits: jax.Array) -> jax.Array:
    """ln(1 + e^z), stable for large |z|, with the sigmoid as its derivative.

    It gives the values of `jax.nn.softplus` in two thirds of the time, because it leaves out the
    handling of inf - inf. JAX's derivative goes through the logarithm and takes four times as long.
    """
    return jnp.maximum(logits, 0) + jnp.log1p(jnp.exp(-jnp.abs(logits)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


def click_losses(logits: jax.Array, shown: jax.Array, clicked: jax.Array) -> jax.Array:
    """-[c ln p + (n - c) ln(1 - p)] in nats, of n impressions and c clicks, from log-odds of p.

    `shown` and `clicked` broadcast to the logits.
    """
    # The same as n softplus(z) - c z. ln(sigmoid(z)) would underflow for large |z|.
    return shown.astype(jnp.float32) * softplus(logits) - clicked.astype(jnp.float32) * logits


@singledispatch
def cell_losses(
    model, attraction: jax.Array, examination: jax.Array, shown: jax.Array, clicked: jax.Array
) -> jax.Array:
    """Negative log-likelihood in nats of the clicks of a page's cells, [..., documents, positions].

    Attraction is logits [..., documents], examination [positions]; a model without one does not
    read it.
    """
    return click_losses(cell_logits(model, attraction[..., None], examination), shown, clicked)


def cell_logits(model, attraction: jax.Array, examination: jax.Array) -> jax.Array:
    """The model's log-odds of a click, from the parts that it has."""
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
    """Losses of the additive model's cells. The log-odds are attraction + examination.

    The derivative computes one exponential per document and one per position. One per cell would
    be most of its cost. The derivative clips both parts to [-LIMIT, LIMIT].
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
    """Negative log-likelihood in nats of cells' clicks, [..., documents, positions]: P(click) is
    p = s(a) s(b), of logits a = `attraction` [..., documents] and b = `examination` [positions].

    s is the sigmoid. Of n = `shown` impressions and c = `clicked` clicks, which broadcast to the
    result, the derivative by a is -(c - n p) / (1 - p) s(-a), and by b the same with s(-b). It has
    sigmoids per document and position, none per cell, and takes logits above `SURE` for `SURE`.
    """
    logits = PositionBased().click_logit(attraction[..., None], examination)
    return click_losses(logits, shown, clicked)


@product_losses.defjvp
def _product_losses_jvp(primals, tangents):
    attraction, examination, shown, clicked = primals
    attraction, examination = jnp.minimum(attraction, SURE), jnp.minimum(examination, SURE)
    attracted, examined = jax.nn.sigmoid(attraction)[..., None], jax.nn.sigmoid(examination)
    ignored, unseen = jax.nn.sigmoid(-attraction)[..., None], jax.nn.sigmoid(-examination)
    # 1 - s(a) s(b) as a sum. The difference would lose all digits for products near 1.
    missed = ignored + attracted * unseen
    error = shown.astype(jnp.float32) * attracted * examined - clicked.astype(jnp.float32)
    moved = ignored * tangents[0][..., None] + unseen * tangents[1]
    return product_losses(*primals), error * (moved / missed)

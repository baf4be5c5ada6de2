"""The objective of losses of result pages, and the losses that it knows.

A `PageLoss` holds pages and one loss: a callable `loss(model, page, key)`, with the `Page`s of a
step. It is a function, or a frozen dataclass whose fields are its numbers. The losses ask a model
for the logits of its towers, and put them into the functions of `pointwise`, `listwise` and
`pairwise`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from twotowers.losses import listwise, pairwise, pointwise


class Page(NamedTuple):
    """The pages of a step, in one lane.

    Attributes:
        inputs: [pages, positions, ...] input of the relevance tower.
        clicks: [pages, positions] bool.
        where: [pages, positions] bool, True where the page shows a document.
        given: [positions] or [pages, positions] numbers that the loss reads; None if it reads none.
    """

    inputs: jax.Array
    clicks: jax.Array
    where: jax.Array
    given: jax.Array | None


@register_dataclass
@dataclass(frozen=True)
class PageLoss:
    """The mean over pages of a loss of whole pages; a unit is a page (a session).

    Pages name their documents as rows of one table. A step takes the rows that its pages show, so
    memory does not grow with the number of pages that show a document. If there is one log, lanes
    share this, and a tower's first layer reads features once for all of them.

    Attributes:
        inputs: [documents, ...] input of the relevance tower.
        document: [logs, pages, positions] row of the document at each position; any row where
            there is none.
        clicks: [logs, pages, positions] bool.
        where: [logs, pages, positions] bool, True where a page shows a document. It may have gaps.
        log: [lanes] number of each lane's log.
        loss: a callable of this module.
        given: [lanes, positions] or [lanes, pages, positions] numbers that the loss reads, such as
            weights of clicks; None if it reads none.
    """

    inputs: jax.Array
    document: jax.Array
    clicks: jax.Array
    where: jax.Array
    log: jax.Array
    loss: Callable = field(metadata={"static": True})
    given: jax.Array | None = None

    @property
    def units(self) -> int:
        return self.document.shape[1]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: the page shows a document."""
        return self.where[self._log(lane)].any(-1)

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the pages with the given indices."""
        log = self._log(lane)
        where = self.where[log, index]
        given = None if self.given is None else self.given[lane]
        page = Page(
            inputs=self.inputs[self.document[log, index]],
            clicks=self.clicks[log, index] & where,
            where=where,
            given=given if given is None or given.ndim == 1 else given[index],
        )
        return self.loss(model, page, key)

    def _log(self, lane: jax.Array) -> jax.Array | int:
        # A constant, and not the lane's own number, so that `jax.vmap` gathers once.
        return 0 if self.document.shape[0] == 1 else self.log[lane]


def examination(model, page: Page, key: jax.Array | None) -> jax.Array:
    """[pages, positions] examination logits of `TwoTowers`."""
    return jnp.broadcast_to(model.examination_for(key), page.where.shape)


def inverse_propensity(model, page: Page, key: jax.Array | None = None) -> jax.Array:
    """`pointwise.inverse_propensity_loss`. `page.given` are the weights of clicks."""
    scores = model.relevance(page.inputs, key)
    return pointwise.inverse_propensity_loss(
        scores, page.clicks, where=page.where, weights=page.given
    )


def offset(model, page: Page, key: jax.Array | None = None) -> jax.Array:
    """`pointwise.sigmoid_loss` of relevance plus known log-odds, `page.given`."""
    scores = model.relevance(page.inputs, key) + page.given
    return pointwise.sigmoid_loss(scores, page.clicks, where=page.where)


@dataclass(frozen=True)
class RegressionEM:
    """`pointwise.regression_em_loss` of `TwoTowers`.

    Attributes:
        watched: what early stopping watches: "likelihood", the negative log-likelihood of the
            model, whose minimum this method seeks; or "em", this loss, as the published code does.
            It also has the entropy of the hidden events, which training may raise.
    """

    watched: str = "likelihood"

    def __call__(self, model, page: Page, key: jax.Array | None = None) -> jax.Array:
        logits = model.relevance(page.inputs, key), examination(model, page, key)
        if key is None and self.watched == "likelihood":
            both = model.model.click_logit(attraction=logits[0], examination=logits[1])
            return pointwise.sigmoid_loss(both, page.clicks, where=page.where)
        return pointwise.regression_em_loss(*logits, page.clicks, where=page.where)


@dataclass(frozen=True)
class Softmax:
    """Loss of each page: `listwise.softmax_loss` of the relevance tower's logits, for `PageLoss`.

    `page.given` has the weights of clicks. If it is None, each click has weight 1.

    Attributes:
        normalised, unclicked: as in `listwise.softmax_loss`.
    """

    normalised: listwise.Normalised = "not"
    unclicked: listwise.Unclicked = "uniform"

    def __call__(self, model, page: Page, key: jax.Array | None = None) -> jax.Array:
        return listwise.softmax_loss(
            model.relevance(page.inputs, key),
            page.clicks,
            where=page.where,
            weights=page.given,
            normalised=self.normalised,
            unclicked=self.unclicked,
        )


@dataclass(frozen=True)
class Dual:
    """The sum of `listwise.dual_losses` of `TwoTowers`.

    Attributes:
        normalised: as in `listwise.dual_losses`.
        watched: what early stopping watches: "places", where the clicks of a page fall, which is
            the softmax loss of f + b; or "losses", this sum, as the published code does. Its
            weights change in training, so that the sums of two epochs are not comparable.
    """

    normalised: listwise.Normalised = "not"
    watched: str = "places"

    def __call__(self, model, page: Page, key: jax.Array | None = None) -> jax.Array:
        logits = model.relevance(page.inputs, key), examination(model, page, key)
        given = {"where": page.where, "normalised": self.normalised}
        if key is None and self.watched == "places":
            return listwise.softmax_loss(sum(logits), page.clicks, **given)
        return sum(listwise.dual_losses(*logits, page.clicks, **given))


def attention_rank(model, page: Page, key: jax.Array | None = None) -> jax.Array:
    """`listwise.attention_rank_loss`. `page.given` are the targets. Clicks are not read."""
    targets = jnp.broadcast_to(page.given, page.where.shape)
    scores = model.relevance(page.inputs, key)
    return listwise.attention_rank_loss(scores, targets, where=page.where)


def lambda_rank(model, page: Page, key: jax.Array | None = None) -> jax.Array:
    """`pairwise.lambda_rank_loss`."""
    scores = model.relevance(page.inputs, key)
    return pairwise.lambda_rank_loss(scores, page.clicks, where=page.where)


@dataclass(frozen=True)
class PairwiseDebiasing:
    """`pairwise.pairwise_debiasing_loss` of `RatioTowers`, plus its penalties.

    The published penalty grows with the pages of a batch. So it is scaled to `batch` pages where a
    step of the evaluation has another number of them.

    Attributes:
        form: "published", "paper" or "corrected".
        batch: pages of a training step.
    """

    form: str = "corrected"
    batch: int = 256

    def __call__(self, model, page: Page, key: jax.Array | None = None) -> jax.Array:
        scores, where = model.relevance(page.inputs, key), page.where
        positions = where.shape[-1]
        place = jnp.where(where, jnp.arange(positions), positions)
        tables = model.ratios()
        if self.form == "paper":
            tables = [table / table[0] for table in tables]
        ratios = [table[place] for table in tables]
        losses = pairwise.pairwise_debiasing_loss(
            scores, page.clicks, *ratios, where=where, form=self.form
        )
        if self.form == "published":
            scale = self.batch / len(scores)
            penalties = [scale * pairwise.ratio_penalty(each) for each in ratios]
        else:
            penalties = [
                pairwise.ratio_penalty(each[:positions], form=self.form) for each in tables
            ]
        return losses + sum(penalties)

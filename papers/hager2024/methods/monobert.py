"""A cross-encoder trained on clicks and masked tokens, as a ranker (Table 3.2).

Documents are sequences of tokens, as `twotowers.jobs.encode` gives them if it trains no encoder. As
in the published code, the naive softmax does not normalise clicks, IPS and DLA do, and pointwise
losses are means over documents.
"""

from functools import partial
from itertools import islice

import jax.numpy as jnp
import numpy as np
from flax import nnx

from twotowers.jobs.encode import pages_of
from twotowers.losses.listwise import dual_losses, softmax_loss
from twotowers.losses.pointwise import clipped_weights, inverse_propensity_loss, sigmoid_loss
from twotowers.methods.descent import position_based_losses
from twotowers.methods.harvesting import PUBLISHED, harvested
from twotowers.methods.task import Fitted, Task
from twotowers.towers import pretraining
from twotowers.towers.monobert import MonoBert
from twotowers.towers.sequences import CLS, OFFSET, Sequences

GPU = RESUMES = True

MASK = 0.3
"""The chance that a token is masked."""
HIGHEST = 10.0
"""The largest weight of a click."""
CHOICES = {"loss": ("naive", "two_tower", "ips", "softmax", "softmax_ips", "dla")}
POINTWISE = CHOICES["loss"][:3]


def fit(
    task: Task,
    *,
    loss: str = "naive",
    steps: int = 100,
    vocabulary: int | None = None,
    layers: int = 2,
    attention_heads: int = 2,
    width: int = 32,
    inner: int = 128,
    documents: int = 128,
    learning_rate: float = 0.001,
    marks: bool = False,
) -> list[Fitted]:
    """Train an encoder per lane; the model and the tower are not used.

    Args:
        loss: of clicks.
        steps, documents, learning_rate: of training; see
            `twotowers.towers.pretraining.Pretraining`.
        vocabulary: number of tokens of texts; those of training if None.
        layers, attention_heads, width, inner: see `twotowers.towers.monobert.MonoBert`.
        marks: see `twotowers.towers.sequences.marked`.
    """
    train = task.splits["train"]
    tokens = train.table.astype(np.int32)
    settings = pretraining.Pretraining(
        learning_rate=learning_rate, mask=MASK, documents=documents, pages=documents // 4
    )
    values = []
    for log, _ in task.lanes:
        encoder = MonoBert(
            vocabulary=vocabulary or int(max(tokens.max() + 1 - OFFSET, 1)),
            length=tokens.shape[1],
            layers=layers,
            heads=attention_heads,
            width=width,
            inner=inner,
            segments=3 if marks else 2,
            rngs=nnx.Rngs(task.seed),
        )
        theta = harvested(task, log, PUBLISHED)
        pages = train.sessions[log]
        given = partial(pretraining.shown_texts, tokens, train.rows(log), pages.clicks, pages.where)
        if train.texts:
            given = partial(pages_of, train.texts, length=tokens.shape[1], positions=task.positions)
        trained, _ = pretraining.pretrain(
            encoder,
            islice(pretraining.forever(given, settings, marks=marks), steps),
            click_loss(loss, clipped_weights(theta, highest=HIGHEST)),
            settings=settings,
            seed=task.seed,
            checkpoint=task.checkpoint,
            about=(loss, tokens, pages.clicks, *map(str, train.texts or ())),
        )
        values.append(_fitted(trained, log, loss, theta, marks))
    return values


def click_loss(loss: str, weights: np.ndarray):
    """(scores, bias, clicks, where) -> [pages] losses."""
    weights = jnp.asarray(weights, jnp.float32)

    def of_pages(scores, bias, clicks, where):
        given = {"where": where}
        if loss == "naive":
            return pretraining.over_documents(sigmoid_loss(scores, clicks, **given), where)
        if loss == "two_tower":
            return pretraining.over_documents(sigmoid_loss(scores + bias, clicks, **given), where)
        if loss == "ips":
            losses = inverse_propensity_loss(scores, clicks, weights=weights, **given)
            return pretraining.over_documents(losses, where)
        if loss == "softmax":
            return softmax_loss(scores, clicks, **given)
        if loss == "softmax_ips":
            return softmax_loss(scores, clicks, weights=weights, normalised="after", **given)
        both = scores, jnp.broadcast_to(bias, scores.shape)
        return sum(dual_losses(*both, clicks, highest=HIGHEST, normalised="after", **given))

    return of_pages


def _fitted(trained, log: int, loss: str, theta: np.ndarray, marks: bool) -> Fitted:
    bias = np.asarray(trained.bias[...], float)[: len(theta)]

    def scores(inputs: np.ndarray) -> np.ndarray:
        tokens = inputs.reshape(-1, inputs.shape[-1]).astype(np.int32)
        there, values = tokens[:, 0] == CLS, np.zeros(len(tokens))
        vectors = np.concatenate(
            [*pretraining.vectors_of(trained.encoder, Sequences.of(tokens[there], marks=marks))]
        )
        values[there] = np.asarray(trained.encoder.click(jnp.asarray(vectors)))[:, 0]
        return values.reshape(inputs.shape[:-1])

    def page_losses(split):
        pages = split.sessions[log]
        # Splits may share a table of documents, most of which this one's pages do not show.
        shown, place = np.unique(split.rows(log), return_inverse=True)
        logits = scores(split.table[shown])[place.reshape(pages.where.shape)]
        if loss == "ips":
            each = position_based_losses(logits, theta, pages.clicks)
        else:
            logits = logits + (bias if loss == "two_tower" else 0)
            each = np.logaddexp(0, np.where(pages.clicks, -logits, logits))
        return each, each

    positions = {"two_tower": bias, "dla": bias, "ips": np.log(theta), "softmax_ips": np.log(theta)}
    return Fitted(
        scores=scores,
        bias=positions.get(loss),
        page_losses=page_losses if loss in POINTWISE else None,
    )

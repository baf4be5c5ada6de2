"""Pairwise debiasing (Hu et al. 2019): LambdaRank with learnt ratios of clicks and non-clicks.

The loss is `twotowers.losses.pairwise.pairwise_debiasing_loss` (Hager 2026, Eq. 3.7). The
scores do not predict clicks.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from twotowers.losses.cells import softplus
from twotowers.losses.pages import PairwiseDebiasing
from twotowers.methods.descent import fitted_of, relevance_of, train
from twotowers.methods.task import Fitted, Task
from twotowers.towers.parts import embedding

TRAINS = True
NEEDS = ("sessions",)


def fit(
    task: Task, *, form: Literal["published", "paper", "corrected"] = "corrected"
) -> list[Fitted]:
    """Fit the relevance tower and the ratios of every lane by gradient descent.

    The bias of a lane is ln(t+_k / t+_1).

    Args:
        task: its model's click probability is not used.
        form: "published", "paper" or "corrected".
    """
    model = RatioTowers(
        relevance_of(task).relevance, task.positions, rngs=nnx.Rngs(task.seed).fork()
    )
    batch = task.training["batch"]
    result = train(task, model, PairwiseDebiasing(form=form, batch=batch))
    return [
        fitted_of(result, lane, bias=_bias(result.model(lane))) for lane in range(len(task.lanes))
    ]


def _bias(model: RatioTowers) -> np.ndarray:
    positive = np.asarray(model.ratios()[0], float)[:-1]
    return np.log(positive / positive[0])


class RatioTowers(nnx.Module):
    """A relevance tower, and two ratios t+ and t- per position: softplus of a parameter each.

    The parameters start at N(0, 1), as published. The tables have a row more than there are
    positions, for places without a document: a page of the published code is padded with position
    0, whose ratios are trained too.

    Attributes:
        relevance: a tower that maps inputs [..., documents, *] to logits [..., documents].
        positive, negative: embeddings [positions + 1, 1].
    """

    def __init__(self, relevance: nnx.Module, positions: int, *, rngs: nnx.Rngs):
        self.relevance = relevance
        self.positive = embedding(positions + 1, rngs=rngs)
        self.negative = embedding(positions + 1, rngs=rngs)

    def ratios(self) -> tuple[jax.Array, jax.Array]:
        """[positions + 1] t+ and t-. The last is of places without a document."""
        return tuple(
            jnp.ravel(softplus(table.embedding[...])) for table in (self.positive, self.negative)
        )

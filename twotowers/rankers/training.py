"""The rankers behind logging policies, trained on relevance labels.

They are meant to be the strongest that features allow, not to generalise. `twotowers.logs.policies`
turns a ranker's scores into a policy, and needs none of the libraries that train.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from twotowers.errors import check_choice
from twotowers.files.rankings import Rankings, mask, pad
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.losses.labels import LabelLoss
from twotowers.rankers.svm import sample_queries, train_rank_svm
from twotowers.rankers.trees import fit_lambdamart, some_queries
from twotowers.towers.deep import DeepTower
from twotowers.towers.linear import LinearTower
from twotowers.towers.two_towers import scores

RANKERS = ("expert", "linear", "deep", "svm", "lambdamart")
DROPOUT = 0.1


class LinearRanker(nnx.Module):
    """A linear score with an intercept, as published. The linear relevance tower has none."""

    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.tower = LinearTower(width, rngs=rngs)
        self.intercept = nnx.Param(jnp.zeros(()))

    def __call__(self, features: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] features -> [...] scores. `key` is not used."""
        return self.tower(features) + self.intercept[...]


def train_ranker(
    name: str, rankings: Rankings, relevance: np.ndarray, settings: Mapping | None, *, seed: int
):
    """Train the logging policy's ranker on all relevance labels of the training queries.

    Early stopping watches the training loss, as published.

    Args:
        name: 'linear', 'deep', 'svm' (a ranking SVM), 'lambdamart' (boosted trees), or 'expert',
            which needs no training. Or any other name, if the settings give its `kind`.
        rankings: the training queries.
        relevance: [rows] the labels to regress on, in [0, 4].
        settings: how to train: the values of `FitSettings`, or `share` of the queries and
            `cost` of a wrong pair for the SVM, or the number of `queries` and what
            `fit_lambdamart` takes for LambdaMART; and `kind`, 'linear', 'deep' or 'lambdamart', if
            the name is another.
        seed: initialises the ranker, orders its batches, draws its dropout or its queries.

    Returns:
        score(rankings, relevance) -> [rows] float32 scores; higher ranks first.
    """
    settings = dict(settings or {})
    name = settings.pop("kind", name)
    if name == "expert":
        return lambda rankings, relevance: relevance
    if name == "svm":
        labelled = sample_queries(rankings, settings["share"], seed=seed)
        weights = train_rank_svm(labelled, cost=settings["cost"])
        return lambda rankings, relevance: rankings.features @ weights
    if name == "lambdamart":
        chosen = some_queries(rankings, settings.pop("queries"), seed=seed)
        predict = fit_lambdamart(rankings.take(chosen), relevance[chosen], **settings)
        return lambda rankings, relevance: predict(rankings.features)
    rngs = nnx.Rngs(seed)
    width = rankings.features.shape[1]
    build = {
        "linear": lambda: LinearRanker(width, rngs=rngs),
        "deep": lambda: DeepTower(width, dropout=DROPOUT, rngs=rngs),
    }
    check_choice(name, build, field="ranker")
    length = rankings.lengths.max()
    objective = LabelLoss(
        features=jnp.asarray(pad(rankings.features, rankings.offsets, length)),
        labels=jnp.asarray(pad(relevance, rankings.offsets, length)),
        where=jnp.asarray(mask(rankings.lengths, length)),
    )
    training = FitSettings(**settings)
    model = fit(build[name](), objective, objective, training, lanes=1, seed=seed).model(0)
    return lambda rankings, relevance: np.asarray(scores(model, rankings.features))

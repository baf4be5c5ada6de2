"""The rankers behind logging policies, trained on relevance labels.

They are meant to be the strongest that features allow, not to generalise. `twotowers.logs.policies`
turns a ranker's scores into a policy, and needs none of the libraries that train.

Chen et al. (2024, Appendix C.1) train a linear ranking SVM (Joachims, KDD 2006) on 1 % of the
training queries with their labels, sort all documents by it, and display the first ten.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.tree_util import register_dataclass

from twotowers.errors import InputError, check_choice
from twotowers.files.rankings import Rankings, mask, pad
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.rankers.trees import fit_lambdamart, some_queries
from twotowers.towers.deep import DeepTower
from twotowers.towers.linear import LinearTower
from twotowers.towers.two_towers import scores

DROPOUT = 0.1

COST = 200.0
"""Option -c of svm_rank_learn in the published scripts."""


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

    Early stopping watches the training loss, as published. The name is 'linear', 'deep', 'svm' (a
    ranking SVM), 'lambdamart' (boosted trees), or 'expert', which needs no training; or any other,
    if the settings give its `kind`. Settings are those of `FitSettings`; of the SVM `share` of the
    queries and `cost` of a wrong pair; of LambdaMART the number of `queries` and what
    `fit_lambdamart` takes. The result is score(rankings, relevance) -> [rows] float32 scores;
    higher ranks first.
    """
    settings = dict(settings or {})
    name = settings.pop("kind", name)
    if name == "expert":
        return lambda rankings, relevance: relevance
    if name == "svm":
        number = max(int(settings["share"] * len(rankings.queries)), 1)
        labelled = rankings.take(some_queries(rankings, number, seed=seed))
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


@register_dataclass
@dataclass(frozen=True)
class LabelLoss:
    """Mean squared error to labels [queries, documents] of a query; a unit is a query."""

    features: jax.Array
    labels: jax.Array
    where: jax.Array

    @property
    def units(self) -> int:
        return self.features.shape[0]

    def has(self, lane: jax.Array) -> jax.Array:
        """[units] bool: all True, because every query has labels."""
        return jnp.ones(self.units, bool)

    def losses(self, model, index: jax.Array, lane: jax.Array, key: jax.Array | None = None):
        """[units] losses of the queries with the given indices."""
        where = self.where[index]
        error = jnp.where(where, model(self.features[index], key) - self.labels[index], 0.0)
        return jnp.square(error).sum(-1) / where.sum(-1)


def train_rank_svm(rankings: Rankings, *, cost: float = COST) -> np.ndarray:
    """Weights [width] of a linear ranking SVM; a score is features @ weights.

    It minimises |w|^2 / 2 + (cost / queries) * sum over pairs of max(0, 1 - w (x_i - x_j))^2. A
    pair is two documents of a query, and i has the higher label. `cost` is the published option
    -c, which that program also divides by the queries and multiplies by the sum over pairs. That
    program does not square the hinge. scikit-learn has no solver that converges on a plain hinge
    with labels this noisy. The squared hinge has its optimum after a few Newton steps. Memory
    grows with the pairs.
    """
    # The import is slow, and the other rankers do not need it.
    from sklearn.svm import LinearSVC

    better, worse = _pairs(rankings)
    if not len(better):
        raise InputError(
            "no query has two documents of different labels",
            field="label",
            expected="labels that say which document is better",
        )
    # The solver separates two classes. A pair and its mirror image have the same loss, so each
    # pair is entered both ways at half the cost.
    difference = (rankings.features[better] - rankings.features[worse]).astype(float)
    side = np.repeat([1, -1], len(difference))
    svm = LinearSVC(C=cost / len(rankings.queries) / 2, fit_intercept=False, dual=False)
    return svm.fit(np.concatenate([difference, -difference]), side).coef_[0]


def _pairs(rankings: Rankings) -> tuple[np.ndarray, np.ndarray]:
    """[pairs] rows of the better and [pairs] of the worse document, for all pairs of a query."""
    offsets = rankings.offsets
    better, worse = [], []
    for start, stop in pairwise(offsets):
        label = rankings.label[start:stop]
        above, below = np.nonzero(label[:, None] > label)
        better.append(start + above)
        worse.append(start + below)
    return np.concatenate(better), np.concatenate(worse)

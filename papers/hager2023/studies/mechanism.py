"""Where the gap between IPS and the click model comes from: misfit, variance or optimisation.

Both losses are minimised on expected clicks of the production ranker's lists, so that no sampling
noise is left. With a parameter per document the minimum is known. For a linear and for a deep
ranker it is found by L-BFGS in float64. The deep one's is a local minimum, and its squared weights
are penalised: without that its loss falls for ever, on queries that it can fit. What sampling adds
is seen where the same linear ranker has the clicks of so many sessions instead. It is a study
because it is about optima, and nothing is validated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from flax import nnx
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize
from scipy.special import expit, logit

from twotowers import SPLITS
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.logs.policies import ranks, read_scores
from twotowers.models.position_based import PositionBased
from twotowers.randomness import stream
from twotowers.results.metrics import ndcg
from twotowers.towers.dense import DenseTower

KINDS = ("ips", "pbm")
PENALTY = 1e-6
"""The linear ranker's penalty on its squared weights. Columns that are alike, and labels of
attraction 1, have no optimum without it."""
USER = PositionBased()

Ranker = Callable[[np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    hidden: list[int],
    iterations: int,
    penalties: dict[str, float],
    sessions: int,
) -> pd.DataFrame:
    """nDCG@10 of both losses with a parameter per document, a linear and a deep ranker.

    Args:
        inputs: rankings per split, and the policy's scores.
        seed: starts the deep ranker; draws which queries are taken, and clicks.
        queries: of training and of test, at most.
        hidden: widths of the deep ranker's layers.
        iterations: of the deep ranker, if it does not converge before.
        penalties: of its squared weights, per kind. The click model's loss is smaller by about the
            examination, so one penalty for both would be a stronger one for the click model.
        sessions: of the sampled clicks, spread evenly over the training queries.

    Returns:
        tower (document, linear, sampled, deep), kind (ips, pbm), metric, position, value. Of
        `document` and with metric ndcg@10_train on the training queries, of the others on the test
        queries. Metrics `gradient` and `fell` say how near the minimum a ranker is: see `minimum`.
    """
    lists = {split: some(inputs, split, queries, seed) for split in ("train", "test")}
    exact = expected(*lists["train"])
    drawn = sampled(*exact, sessions / len(lists["train"][0].queries), stream("mechanism", seed))
    rows = []
    for kind in KINDS:
        found = {
            "document": per_document(lists["train"], kind),
            "linear": linear(lists, kind, exact),
            "sampled": linear(lists, kind, (drawn, exact[1])),
            "deep": deep(lists, kind, exact, hidden, iterations, penalties[kind], seed),
        }
        for tower, values in found.items():
            rows += [{"tower": tower, "kind": kind, **row} for row in values]
    return pd.DataFrame(rows).assign(position=None)


def some(inputs, split: str, queries: int, seed: int) -> tuple[Rankings, np.ndarray]:
    """Some queries of a split, other ones per seed, and [rows] the rank of each document."""
    lists = read_rankings(getattr(inputs, split))
    policy = read_scores(inputs.policy, split)
    place = ranks(policy.score, policy.pairs.offsets)
    rng = np.random.default_rng([seed, SPLITS.index(split)])
    chosen = rng.permutation(lists.queries)[:queries]
    rows = np.flatnonzero(np.isin(lists.query, chosen))
    return lists.take(rows), place[rows]


def expected(lists: Rankings, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[rows] attraction and examination of the simulated user."""
    attraction = expit(USER.truth(lists.label, 1)["attraction"])
    return attraction, USER.examined(int(place.max()))[place - 1]


def sampled(attraction, examined, views: float, rng: np.random.Generator) -> np.ndarray:
    """[rows] attraction as estimated from clicks: their number over views and examination.

    It may be above 1. Both losses of a row with this attraction are those of its click rate.
    """
    return rng.binomial(int(views), attraction * examined) / (int(views) * examined)


def measured(lists: Rankings, values: np.ndarray, metric: str = "ndcg@10") -> dict:
    """Mean nDCG@10 of [rows] scores; queries without relevant document count 0."""
    length = lists.lengths.max()
    columns = (pad(column, lists.offsets, length) for column in (values, lists.label))
    found = ndcg(*columns, where=mask(lists.lengths, length))
    return {"metric": metric, "value": float(found.mean())}


def per_document(train: tuple, kind: str) -> Iterator[dict]:
    """The minimum of each document's own loss, by bisection on the linear ranker's gradient.

    Both should be relevance itself (Theorem 1, and Saito et al. 2020).
    """
    lists, place = train
    attraction, examined = expected(lists, place)
    low, high = np.full(len(place), -30.0), np.full(len(place), 30.0)
    for _ in range(60):  # The derivative rises through its one root.
        middle = (low + high) / 2
        below = slope(middle, attraction, examined, kind) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    yield measured(lists, (low + high) / 2)


def slope(logits, attraction, examined, kind: str) -> np.ndarray:
    """Derivative of each row's expected loss by its logit.

    IPS: s(z) - y. PBM: o (s(z) - y) s(-z) / (1 - o s(z)), from Eq. 2.7.
    """
    estimate = expit(logits)
    error = estimate - attraction
    return (
        error
        if kind == "ips"
        else examined * error * expit(-logits) / (1 - examined * estimate + 1e-12)
    )


def value(logits, attraction, examined, kind: str) -> np.ndarray:
    """Each row's expected loss, Eq. 2.5 or 2.3."""
    if kind == "ips":
        return np.logaddexp(0, logits) - attraction * logits
    log_estimate = -np.logaddexp(0, -logits)
    clicks = examined * attraction
    missed = np.log1p(-np.minimum(examined * np.exp(log_estimate), 1 - 1e-12))
    return -(clicks * (np.log(examined) + log_estimate) + (1 - clicks) * missed)


def minimum(
    ranker: Ranker,
    start: np.ndarray,
    seen: tuple,
    queries: int,
    kind: str,
    most: int,
    penalty: float = PENALTY,
):
    """Weights that minimise the sum over documents, mean over queries; and how near they are.

    Args:
        ranker: weights -> [rows] logits, and a function of their derivatives that gives those by
            weights.
        start: weights to start from.
        seen: [rows] attraction, expected or estimated from clicks, and examination.
        queries: number of queries.
        kind: see `KINDS`.
        most: iterations, if the gradient does not vanish before.
        penalty: of squared weights.

    Returns:
        The weights, and {metric: value}: the largest derivative, and `fell`: what the loss lost in
        the second half of the iterations, as a part of what it ends above its floor. No ranker gets
        below the floor, where each document has the best logit of its own (within 28, where an
        attraction that was estimated is above 1).
    """
    attraction, examined = seen
    losses = []

    def objective(weights):
        logits, back = ranker(weights)
        loss = value(logits, attraction, examined, kind).sum() / queries
        gradient = back(slope(logits, attraction, examined, kind) / queries)
        return loss + penalty * weights @ weights, gradient + 2 * penalty * weights

    def note(intermediate_result):
        losses.append(intermediate_result.fun)

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=note,
        options={"maxiter": most, "maxfun": 2 * most, "ftol": 0, "gtol": 1e-6, "maxcor": 30},
    )
    own = logit(np.clip(attraction.astype(float), 1e-12, 1 - 1e-12))
    floor = value(own, attraction, examined, kind).sum() / queries
    fell = (losses[len(losses) // 2] - losses[-1]) / (losses[-1] - floor)
    return found.x, {"gradient": float(np.abs(found.jac).max()), "fell": float(fell)}


def standard(lists: dict) -> dict[str, np.ndarray]:
    """split -> [rows, width] features by the mean and the deviation of the training documents."""
    train = lists["train"][0].features
    centre, scale = train.mean(0), train.std(0) + 1e-6
    return {
        split: ((each.features - centre) / scale).astype(float)
        for split, (each, _) in lists.items()
    }


def reported(lists: dict, near: dict, logits: dict[str, np.ndarray]) -> Iterator[dict]:
    """nDCG@10 of [rows] logits on both splits, and how near the minimum they are."""
    for split, metric in (("test", "ndcg@10"), ("train", "ndcg@10_train")):
        yield measured(lists[split][0], logits[split], metric)
    yield from ({"metric": metric, "value": left} for metric, left in near.items())


def linear(lists: dict, kind: str, seen: tuple) -> Iterator[dict]:
    """Measure the optimum of a linear ranker with an intercept."""
    features = {
        split: np.concatenate([each, np.ones((len(each), 1))], axis=1)
        for split, each in standard(lists).items()
    }
    queries = len(lists["train"][0].queries)

    def ranker(weights):
        return features["train"] @ weights, lambda slopes: slopes @ features["train"]

    start = np.zeros(features["train"].shape[1])
    weights, near = minimum(ranker, start, seen, queries, kind, 20_000)
    yield from reported(lists, near, {split: each @ weights for split, each in features.items()})


def deep(
    lists: dict, kind: str, seen: tuple, hidden: list[int], most: int, penalty: float, seed: int
) -> Iterator[dict]:
    """Measure a deep ranker without dropout, near the local minimum that its start leads to."""
    with jax.enable_x64(True):
        features = {split: jnp.asarray(each) for split, each in standard(lists).items()}
        tower = DenseTower(features["train"].shape[1], layers=hidden, rngs=nnx.Rngs(seed))
        graph, state = nnx.split(tower)
        start, unravel = ravel_pytree(jax.tree.map(lambda each: each.astype(float), state))

        @jax.jit
        def logits(weights, features):
            return nnx.merge(graph, unravel(weights))(features)

        forward = jax.jit(lambda weights: jax.vjp(logits, weights, features["train"]))
        back = jax.jit(lambda pulled, slopes: pulled(slopes)[0])

        def ranker(weights):
            found, pulled = forward(weights)
            return np.asarray(found), lambda slopes: np.asarray(back(pulled, slopes))

        queries = len(lists["train"][0].queries)
        weights, near = minimum(ranker, np.asarray(start), seen, queries, kind, most, penalty)
        values = {split: np.asarray(logits(weights, each)) for split, each in features.items()}
    yield from reported(lists, near, values)

"""Where the gap between IPS and the click model comes from: misfit or variance.

Both losses are minimised on expected clicks of the production ranker's lists, so that no sampling
noise is left. With a parameter per document the minimum is known. For a linear ranker it is found
by Newton's method in a trust region. What sampling adds is seen where the same ranker has the
clicks of so many sessions instead.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit

from twotowers.claims.metrics import ndcg
from twotowers.files.rankings import Rankings, read_rankings
from twotowers.logs.policies import ranks, read_scores
from twotowers.models.position_based import PositionBased
from twotowers.randomness import stream
from twotowers.splits import SPLITS

KINDS = ("ips", "pbm")
PENALTY = 1e-6
"""The penalty on squared weights. Columns that are alike, and labels of attraction 1, have no
optimum without it."""
USER = PositionBased()


def run(inputs, *, seed: int, queries: int, sessions: int) -> pd.DataFrame:
    """nDCG@10 of both losses with a parameter per document, and with a linear ranker.

    Tower `document`, with metric ndcg@10_train, is on the training queries, `linear` and `sampled`
    on the test queries, at most `queries` of each. Sampled clicks are spread evenly over the
    training queries. Metric `gradient` says how near the minimum a ranker is: see `minimum`.
    """
    lists = {split: some(inputs, split, queries, seed) for split in ("train", "test")}
    exact = expected(*lists["train"])
    drawn = sampled(*exact, sessions / len(lists["train"][0].queries), stream("mechanism", seed))
    rows = []
    for kind in KINDS:
        means = {
            "document": per_document(lists["train"], kind),
            "linear": linear(lists, kind, exact),
            "sampled": linear(lists, kind, (drawn, exact[1])),
        }
        for tower, values in means.items():
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
    *columns, where = lists.padded(values, lists.label)
    means = ndcg(*columns, where=where)
    return {"metric": metric, "value": float(means.mean())}


def per_document(train: tuple, kind: str) -> Iterator[dict]:
    """The minimum of each document's own loss, by bisection on the linear ranker's gradient.

    Both should be relevance itself (Theorem 1, and Saito et al. 2020).
    """
    lists, place = train
    attraction, examined = expected(lists, place)
    low, high = np.full(len(place), -30.0), np.full(len(place), 30.0)
    for _ in range(60):  # The derivative rises through its one root.
        middle = (low + high) / 2
        with jax.enable_x64(True):
            below = slope(middle, attraction, examined, kind) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    yield measured(lists, (low + high) / 2)


def value(logits, attraction, examined, kind: str) -> np.ndarray:
    """Each row's expected loss, Eq. 2.5 or 2.3."""
    if kind == "ips":
        return jnp.logaddexp(0, logits) - attraction * logits
    log_estimate = -jnp.logaddexp(0, -logits)
    clicks = examined * attraction
    missed = jnp.log1p(-jnp.minimum(examined * jnp.exp(log_estimate), 1 - 1e-12))
    return -(clicks * (jnp.log(examined) + log_estimate) + (1 - clicks) * missed)


slope = jax.jit(jax.grad(lambda *rows: value(*rows).sum()), static_argnums=3)
"""Derivative of each row's expected loss by its logit."""
curvature = jax.jit(jax.grad(lambda *rows: slope(*rows).sum()), static_argnums=3)
"""Derivative of `slope` by each row's logit. The click model's may be negative."""


def minimum(
    features: np.ndarray, start: np.ndarray, seen: tuple, queries: int, kind: str
) -> tuple[np.ndarray, float]:
    """Weights that minimise the sum over documents, mean over queries; their largest derivative.

    Logits are a weighted sum of features [rows, weights]; `seen` [rows] are attraction, expected or
    estimated from clicks, and examination; `kind` is one of `KINDS`.
    """

    def objective(weights):
        logits = features @ weights
        loss = float(value(logits, *seen, kind).sum()) / queries
        gradient = np.asarray(slope(logits, *seen, kind)) / queries @ features
        return loss + PENALTY * weights @ weights, gradient + 2 * PENALTY * weights

    def hessian(weights):
        bent = np.asarray(curvature(features @ weights, *seen, kind)) / queries
        return (features.T * bent) @ features + 2 * PENALTY * np.eye(len(weights))

    how = {"method": "trust-exact", "options": {"gtol": 1e-6}}
    with jax.enable_x64(True):
        means = minimize(objective, start, jac=True, hess=hessian, **how)
    return means.x, float(np.abs(means.jac).max())


def linear(lists: dict, kind: str, seen: tuple) -> Iterator[dict]:
    """nDCG@10 at the optimum of a linear ranker with an intercept, and how near it is.

    Features are standardised by the training documents.
    """
    train = lists["train"][0]
    centre, scale = train.features.mean(0), train.features.std(0) + 1e-6
    features = {
        split: np.pad(
            (each.features - centre) / scale.astype(float), ((0, 0), (0, 1)), constant_values=1
        )
        for split, (each, _) in lists.items()
    }
    start = np.zeros(features["train"].shape[1])
    weights, gradient = minimum(features["train"], start, seen, len(train.queries), kind)
    for split, metric in (("test", "ndcg@10"), ("train", "ndcg@10_train")):
        yield measured(lists[split][0], features[split] @ weights, metric)
    yield {"metric": "gradient", "value": gradient}

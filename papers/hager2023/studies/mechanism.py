"""Where the gap between IPS and the click model comes from: misfit, variance or optimisation.

Both losses are minimised on expected clicks of the production ranker's lists, so that no sampling
noise is left. With a parameter per document the minimum is known; for a linear ranker it is found
exactly (L-BFGS, float64, until the gradient vanishes). What sampling adds is seen where the same
linear ranker has the clicks of so many sessions instead. A deep one is trained without early
stopping for a fixed number of epochs, and is no optimum. It is a study because it is about optima,
and nothing is validated.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit

from twotowers import SPLITS
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.logs.policies import ranks, read_scores
from twotowers.methods.task import CERTAIN
from twotowers.models.document_rate import DocumentRate
from twotowers.models.position_based import PositionBased
from twotowers.models.towers import scores, two_towers
from twotowers.objectives.likelihood import RowLoss
from twotowers.randomness import stream
from twotowers.results.metrics import ndcg
from twotowers.towers.dense import DenseTower
from twotowers.towers.lane import KNOWN

KINDS = ("ips", "pbm")
PENALTY = 1e-6
"""Of the linear ranker's squared weights: columns that are alike have no optimum without."""
USER = PositionBased()


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    positions: int,
    hidden: list[int],
    epochs: int,
    sessions: int,
) -> pd.DataFrame:
    """nDCG@10 of both losses with a parameter per document, a linear and a deep ranker.

    Args:
        inputs: rankings per split, and the policy's scores.
        seed: initialises the deep ranker and orders its batches; draws which queries are taken, and
            clicks.
        queries: of training and of test, at most.
        positions: longest list.
        hidden: widths of the deep ranker's layers.
        epochs: of the deep ranker.
        sessions: of the sampled clicks, spread evenly over the training queries.

    Returns:
        tower (document, linear, sampled, deep), kind (ips, pbm), metric, position, value. Of
        `document` and with metric ndcg@10_train on the training queries, of the others on the test
        queries.
    """
    lists = {split: some(inputs, split, queries, seed) for split in ("train", "test")}
    scale = lists["train"][0].features.std(0) + 1e-6
    exact = expected(*lists["train"])
    drawn = sampled(*exact, sessions / len(lists["train"][0].queries), stream("mechanism", seed))
    rows = []
    for kind in KINDS:
        found = {
            "document": per_document(lists["train"], kind),
            "linear": linear(lists, kind, scale, exact),
            "sampled": linear(lists, kind, scale, (drawn, exact[1])),
            "deep": deep(lists, kind, scale, positions, hidden, epochs, seed),
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


def linear(lists: dict, kind: str, scale: np.ndarray, seen: tuple) -> Iterator[dict]:
    """The optimum of a linear ranker with an intercept: sum over documents, mean over queries.

    Args:
        lists, kind, scale: see `run`.
        seen: [rows] attraction, expected or estimated from clicks, and examination of the training
            queries' documents.
    """
    train, _ = lists["train"]
    attraction, examined = seen
    centre = train.features.mean(0)
    features = ((train.features - centre) / scale).astype(float)
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    queries = len(train.queries)

    def objective(weights):
        logits = features @ weights
        loss = value(logits, attraction, examined, kind).sum() / queries
        gradient = slope(logits, attraction, examined, kind) @ features / queries
        return loss + PENALTY * weights @ weights, gradient + 2 * PENALTY * weights

    found = minimize(
        objective, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 25_000, "ftol": 0, "gtol": 1e-6, "maxcor": 30},
    )  # fmt: skip
    test = lists["test"][0]
    weights = found.x[:-1] / scale
    yield measured(test, test.features @ weights)
    yield measured(train, train.features @ weights, "ndcg@10_train")
    yield {"metric": "gradient", "value": float(np.abs(objective(found.x)[1]).max())}


def deep(lists, kind, scale, positions, hidden, epochs, seed) -> Iterator[dict]:
    """A deep ranker, trained for so many epochs without early stopping."""
    train, place = lists["train"]
    length = int(train.lengths.max())
    attraction, examined = expected(train, place)
    where = mask(train.lengths, length)
    clicks = attraction if kind == "ips" else attraction * examined

    def laid(column):
        return jnp.asarray(pad(column, train.offsets, length))

    objective = RowLoss(
        inputs=laid((train.features / scale).astype(np.float32)),
        document=jnp.broadcast_to(jnp.arange(length), where.shape)[None],
        position=laid((place - 1).astype(np.int32))[None],
        impressions=jnp.asarray(where, jnp.float32)[None],
        clicks=laid(clicks.astype(np.float32))[None],
        weight=jnp.ones((1, len(where))),
    )
    model = two_towers(
        lambda width, rngs: DenseTower(width, layers=hidden, rngs=rngs),
        width=train.features.shape[1], pairs=0, positions=positions, seed=seed,
        model=PositionBased() if kind == "pbm" else DocumentRate(),
        examination=KNOWN if kind == "pbm" else None,
    )  # fmt: skip
    settings = FitSettings(
        optimizer="adam", learning_rate=0.001, batch=10, epochs=epochs, patience=epochs,
        min_delta=0.0,
    )  # fmt: skip
    known = np.clip(USER.truth(np.zeros(1), positions)["examination"], -CERTAIN, CERTAIN)
    varied = {"examination": [known]} if kind == "pbm" else {}
    found = gradient_fit(
        model, objective, objective, settings, lanes=1, seed=seed, varied=varied
    ).model(0)
    test = lists["test"][0]
    for part, metric in ((test, "ndcg@10"), (train, "ndcg@10_train")):
        yield measured(part, np.asarray(scores(found.relevance, part.features / scale)), metric)

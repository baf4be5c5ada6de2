"""When do better predictions of clicks rank better? Knobs of the stand-in's law, one at a time.

A log is drawn for each value of a knob. Models are linear in what tells of a document: its four
traits, and how readily users of its topic click. So nothing is left to training: their likelihoods
are concave, and have one maximum.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from twotowers.claims.metrics import dcg
from twotowers.randomness import stream
from twotowers.standins.baidu import LARGEST_POOL, Law, World

POSITIONS, RIDGE = 10, 1e-3


def run(
    inputs: Mapping[str, str],
    *,
    seed: int,
    sessions: int,
    queries: int,
    knobs: Mapping[str, Sequence[float]],
) -> pd.DataFrame:
    """What two towers gain on the naive model, in percent of its loss of clicks and of its DCG@10.

    A quarter of the sessions of each log is held out. The gain is of 'clicks' or 'ranking', by knob
    and `at`, its value. Knobs are `agreement`, the correlation of attraction with relevance;
    `features`, the share of a trait's variance that its feature tells; `policy`, the share of the
    variance of the ranker's scores that follows from attraction, not from form; and, where
    annotators and users agree in full, `agreed_policy`, the same share, and `hidden`, the share of
    relevance that follows from no trait, though users and ranker know it.
    """
    law, rows = Law.read(), []
    for knob, values in knobs.items():
        for at in values:
            share = at if knob == "features" else 1
            world = World(sessions, seed, turned(law, knob, at))
            measured = zip(("clicks", "ranking"), gains(world, queries, share), strict=True)
            rows += [
                {"knob": knob, "at": at, "gain": gain, "value": each} for gain, each in measured
            ]
    table = pd.DataFrame(rows).assign(metric="gain", position=None)
    return table.astype({"position": "Int64", "value": float})


def turned(law: Law, knob: str, at: float) -> Law:
    """The law with one knob turned."""
    if knob == "agreement":
        return law.but(agreement=at)
    agreed = law if knob in ("features", "policy") else law.but(agreement=1)
    if knob in ("policy", "agreed_policy"):
        return agreed.but(ranked=at**0.5, form=max(0.99 - at, 0))
    if knob == "hidden":
        shown = (1 - at) / (law.match + law.topic)
        return agreed.but(match=law.match * shown, topic=law.topic * shown)
    return agreed


def gains(world: World, queries: int, share: float) -> Iterator[float]:
    """In percent: how much lower the loss of held-out clicks is, and how much higher DCG@10."""
    pages = list(world.pages())
    session, query, clicks, where, traits = (
        np.concatenate([getattr(each, name) for each in pages])
        for name in ("session", "query", "clicks", "where", "traits")
    )
    where[:, POSITIONS:] = False
    held_out = session < world.sessions / 4
    rng = stream("knobs", world.seed)

    def features(traits: np.ndarray, query: np.ndarray) -> np.ndarray:
        """[rows, 5] of documents [rows, 4], whose query each row has."""
        noise = rng.standard_normal(traits.shape)
        shown = np.sqrt(share) * traits + np.sqrt(1 - share) * noise
        return np.column_stack([shown, world.warmth(query)])

    page, place = np.nonzero(where)
    inputs, positions = features(traits[where], query[page]), np.eye(POSITIONS)[place]
    train, clicked = ~held_out[page], clicks[where]
    judged, length = world.annotated(queries)
    documents = world.candidates(judged, LARGEST_POOL)
    seen = world.seen(judged, length, documents)
    labels = world.labels(documents.relevance)
    known = features(documents.traits[seen], judged[np.nonzero(seen)[0]])
    losses, worth = [], []
    for bias in (np.ones((len(inputs), 1)), positions):
        design = np.hstack([inputs, bias])
        ranker = LogisticRegression(
            C=1 / RIDGE, fit_intercept=False, solver="newton-cholesky", tol=1e-8
        )
        (weights,) = ranker.fit(design[train], clicked[train]).coef_
        logits = design[~train] @ weights
        losses.append(np.logaddexp(0, np.where(clicked[~train], -logits, logits)).mean())
        scores = np.zeros(seen.shape)
        scores[seen] = known @ weights[: known.shape[1]]
        worth.append(dcg(scores, labels, where=seen, topn=10).mean())
    yield 100 * (1 - losses[1] / losses[0])
    yield 100 * (worth[1] / worth[0] - 1)

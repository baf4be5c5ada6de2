"""`baidu_ultr_uva`, by published statistics of the real set. No click model is fitted here.

Labels come first in the search: their thresholds, what columns say of them, and how far relevance
and appeal agree. Then users: click rates by rank, and the shares of sessions with one click and
with two. The number of queries and the jitter were found by hand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from scripts.filling import markdown
from scripts.standins.targets import SEED, Tables, Target, apart, descend, nearest_law
from twotowers.claims.metrics import dcg, ndcg
from twotowers.randomness import stream
from twotowers.standins.uva import LAW, Law, candidates, draw, labels_of

# Thesis, Table 3.1.
QUERIES = {"train": 1_378_901 / 1_779_017, "test": 501_215 / 593_930}
PAIRS = {"train": 11_715_447 / 14_526_276, "test": 4_209_900 / 4_848_878}
DOCUMENTS, CLICKS, ONE, TWO = 8.165, 0.688, 0.46581, 0.13082
# Click rates by rank over that of the first, from the propensities published with chapter 3.
RATES = np.array([1, 0.5097, 0.2616, 0.2027, 0.1239, 0.0975, 0.0780, 0.0585, 0.0441, 0.0248])
# De Haan and Hager 2024, Tables 1 and 2: (n)DCG@10 of a random ranking, DCG@10 of the logging
# policy and of a ranker trained on labels.
RANDOM, RANDOM_NDCG, POLICY, EXPERT = 6.67, 0.317, 7.33, 10.95
ANNOTATED, SESSIONS = 4_000, 40_000


def tables(sessions: int = SESSIONS) -> Tables:
    found = logged(LAW, sessions, SEED) | annotated(LAW)
    within = Target.within
    rows = [
        within("documents per session", found["documents"], DOCUMENTS, 0.01),
        within("queries per session", found["queries"], QUERIES["train"], 0.01),
        within("query-document pairs per impression", found["pairs"], PAIRS["train"], 0.01),
        within("clicks per session", found["clicks"], CLICKS, 0.05),
        within("sessions with a click", found["one"], ONE, 0.08),
        within("sessions with two clicks", found["two"], TWO, 0.05),
        within("DCG@10, random order", found["random"], RANDOM, 0.01),
        within("nDCG@10, random order", found["random_ndcg"], RANDOM_NDCG, 0.01),
        within("DCG@10, logging policy", found["policy"], POLICY, 0.01),
        within("DCG@10, a ranker that knows what columns say of labels", found["expert"], EXPERT,
               0.01),
    ]  # fmt: skip
    rates = {"stand-in": found["rates"] / found["rates"][0], "published": RATES}
    cells = [[name, *(f"{rate:.3f}" for rate in each)] for name, each in rates.items()]
    return {"uva": rows, "rates": markdown(["", *map(str, range(1, 11))], cells, "---:")}


def annotated(law: Law) -> dict[str, float]:
    """What is published of rankings of annotated documents."""
    rng = stream("calibration of annotations")
    found = candidates(rng, ANNOTATED, law)
    labels = labels_of(found.relevance, law)
    chance, where = rng.random(labels.shape), np.ones(labels.shape, bool)
    scores = {"random": chance, "policy": found.score, "expert": found.signal}
    return {
        "random_ndcg": float(ndcg(chance, labels, where=where).mean()),
        **{name: float(dcg(each, labels, where=where).mean()) for name, each in scores.items()},
    }


def logged(law: Law, sessions: int = 10_000, seed: int = 1) -> dict:
    """What is published of the log."""
    blocks = list(draw(sessions, seed=seed, law=law))
    clicks, where = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("clicks", "where")
    )
    pairs = sum(len(np.unique(block.documents[block.where])) for block in blocks)
    queries = sum(len(np.unique(block.query)) for block in blocks)
    number = clicks.sum(1)
    return {
        "queries": queries / sessions,
        "pairs": pairs / where.sum(),
        "documents": where.sum() / sessions,
        "clicks": number.mean(),
        "one": (number > 0).mean(),
        "two": (number > 1).mean(),
        "rates": clicks.sum(0) / where.sum(0),
    }


def distance_of_labels(law: Law) -> float:
    found = annotated(law)
    wanted = {"random": RANDOM, "random_ndcg": RANDOM_NDCG, "policy": POLICY, "expert": EXPERT}
    return sum((found[name] / each - 1) ** 2 for name, each in wanted.items())


def distance_of_users(law: Law) -> float:
    found = logged(law)
    wanted = {"clicks": CLICKS, "one": ONE, "two": TWO}
    total = sum((found[name] / each - 1) ** 2 for name, each in wanted.items())
    rates = zip(found["rates"] / found["rates"][0], RATES, strict=True)
    return total + np.mean([apart(max(rate, 1e-4), wanted) for rate, wanted in rates])


def of_labels(values: np.ndarray) -> Law:
    """Thresholds 1 and 2, and from there to 3 and to 4; predictable and agreement in (0, 1)."""
    first, second, third, share, agreement = values
    thresholds = np.cumsum([first, *np.exp([second, third, -0.1])]).round(3).tolist()
    predictable, agreement = (round(float(each), 3) for each in (expit(share), np.tanh(agreement)))
    return replace(LAW, thresholds=tuple(thresholds), predictable=predictable, agreement=agreement)


def search() -> None:
    """Print the law that is nearest to the targets, and what it reaches."""
    start, steps = [0, -0.35, 0.2, -0.85, 0.2], [0.3, 0.3, 0.3, 0.5, 0.2]
    law = nearest_law(of_labels, start, steps, distance_of_labels, most=150)
    users = ["level", "satisfied", "spread", "patience", "unsatisfied", "readers", "eta"]
    law = descend(law, users, distance_of_users, positive=("spread", "eta"))
    print(law, annotated(law), logged(law, SESSIONS, SEED))

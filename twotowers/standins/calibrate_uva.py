"""Fit the law of the stand-in of Baidu-ULTR-UVA to published statistics of the real set.

Run by hand: `python -m twotowers.standins.calibrate_uva`. It prints a `Law` for
`twotowers/standins/uva.py`, and what was reached. No click model is fitted here. Labels
come first: their thresholds, what columns say of them, and how far relevance and appeal agree.
Then users: click rates by rank, and the shares of sessions with one click and with two. The number
of queries and the jitter were found by hand.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from twotowers.randomness import stream
from twotowers.standins.uva import LAW, Law, candidates, draw, labels_of
from twotowers.standins.wscd import Users

# Thesis, Table 3.1.
QUERIES, PAIRS = 1_378_901 / 1_779_017, 11_715_447 / 14_526_276
DOCUMENTS, CLICKS, ONE, TWO = 8.165, 0.688, 0.46581, 0.13082
# Click rates by rank over that of the first, from the propensities published with chapter 3.
RATES = np.array([1, 0.5097, 0.2616, 0.2027, 0.1239, 0.0975, 0.0780, 0.0585, 0.0441, 0.0248])
# De Haan and Hager 2024, Tables 1 and 2: (n)DCG@10 of a random ranking, DCG@10 of the logging
# policy and of a ranker trained on labels.
RANDOM, RANDOM_NDCG, POLICY, EXPERT = 6.67, 0.317, 7.33, 10.95
ANNOTATED, SESSIONS = 4_000, 10_000
DISCOUNT = 1 / np.log2(2 + np.arange(10))


def dcg(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[queries] DCG@10."""
    order = np.argsort(-scores, axis=1)[:, :10]
    return (2 ** np.take_along_axis(labels, order, axis=1) - 1) @ DISCOUNT


def annotated(law: Law) -> dict[str, float]:
    """What is published of rankings of annotated documents."""
    rng = stream("calibration of annotations")
    found = candidates(rng, ANNOTATED, law)
    labels = labels_of(found.relevance, law)
    chance, ideal = dcg(rng.random(labels.shape), labels), dcg(labels, labels)
    return {
        "random": chance.mean(),
        "random_ndcg": np.divide(chance, ideal, out=0 * ideal, where=ideal > 0).mean(),
        "policy": dcg(found.score, labels).mean(),
        "expert": dcg(found.signal, labels).mean(),
    }


def logged(law: Law, sessions: int = SESSIONS, seed: int = 1) -> dict:
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


def of_labels(values: np.ndarray) -> Law:
    """Thresholds 1 and 2, and from there to 3 and to 4; predictable and agreement in (0, 1)."""
    first, second, third, share, agreement = map(float, values)
    thresholds = np.cumsum([first, *np.exp([second, third, -0.1])])
    return replace(
        LAW,
        thresholds=tuple(round(float(each), 3) for each in thresholds),
        predictable=round(float(1 / (1 + np.exp(-share))), 3),
        agreement=round(float(np.tanh(agreement)), 3),
    )


def of_users(law: Law, values: np.ndarray) -> Law:
    level, satisfied, spread, patience, unsatisfied, readers, eta = map(float, values)
    shares = {"patience": patience, "unsatisfied": unsatisfied, "readers": readers}
    users = {name: round(float(1 / (1 + np.exp(-each))), 3) for name, each in shares.items()}
    users = Users(**users, eta=round(float(np.exp(eta)), 3))
    numbers = {"level": level, "satisfied": satisfied, "spread": float(np.exp(spread))}
    return replace(law, **{name: round(each, 3) for name, each in numbers.items()}, users=users)


def label_distance(values: np.ndarray) -> float:
    found = annotated(of_labels(values))
    wanted = {"random": RANDOM, "random_ndcg": RANDOM_NDCG, "policy": POLICY, "expert": EXPERT}
    return sum((found[name] / each - 1) ** 2 for name, each in wanted.items())


def user_distance(law: Law, values: np.ndarray) -> float:
    found = logged(of_users(law, values))
    rates = found["rates"] / found["rates"][0]
    wanted = {"clicks": CLICKS, "one": ONE, "two": TWO}
    total = sum((found[name] / each - 1) ** 2 for name, each in wanted.items())
    return total + (np.log(np.maximum(rates, 1e-4) / RATES) ** 2).mean()


def search(distance, start, steps, most: int) -> np.ndarray:
    start = np.asarray(start, float)
    simplex = np.array([start, *(start + np.diag(steps))])
    options = {"initial_simplex": simplex, "maxfev": most, "xatol": 1e-3, "fatol": 1e-9}
    found = minimize(distance, start, method="Nelder-Mead", options=options)
    print(f"{found.fun:.2e} after {found.nfev}", file=sys.stderr, flush=True)
    return found.x


def main() -> None:
    start, steps = [0, -0.35, 0.2, -0.85, 0.2], [0.3, 0.3, 0.3, 0.5, 0.2]
    best = search(label_distance, start, steps, 150)
    law = of_labels(best)
    print(law, annotated(law), flush=True)
    start, steps = [-1.6, 0, 0.4, 1, 1, 0.5, 0.2], [0.5, 0.5, 0.3, 0.7, 0.7, 0.7, 0.3]
    best = search(lambda values: user_distance(law, values), start, steps, 200)
    law = of_users(law, best)
    print(law, annotated(law), logged(law, 40_000, 0))


if __name__ == "__main__":
    main()

"""Fit the law of the stand-in `baidu_mlm` to published statistics, and write `baidu.yaml`.

    .venv/bin/python -m twotowers.standins.calibrate_baidu

It takes seven minutes, knob by knob. Nothing is fitted to clicks here, no ranker is trained, and no
embedding is made.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from functools import cache

import numpy as np
import yaml
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from twotowers.randomness import stream
from twotowers.standins.baidu import CANDIDATES, FILE, LARGEST_POOL, PARTS, Law, World
from twotowers.standins.baidu_files import collection
from twotowers.standins.baidu_texts import document_tokens, query_tokens
from twotowers.text.lexical import lexical_features

SESSIONS, ANNOTATED, SEED = 40_000, 1_500, 0
RANKS = 10
DISCOUNT = 1 / np.log2(2 + np.arange(10))
# Thesis, Table 3.1, train and test parts.
QUERIES = {"train": 1_378_901 / 1_779_017, "test": 501_215 / 593_930}
PAIRS = {"train": 11_715_447 / 14_526_276, "test": 4_209_900 / 4_848_878}
URLS = {"train": 9_455_953 / 11_715_447, "test": 3_557_825 / 4_209_900}
DOCUMENTS, CLICKS, ONE, TWO = 8.165, 0.688, 0.46581, 0.13082
# Click rates by rank over that of the first (published with chapter 3), and the rate of the first.
RATES = np.array([1, 0.5097, 0.2616, 0.2027, 0.1239, 0.0975, 0.0780, 0.0585, 0.0441, 0.0248])
FIRST = 0.3395
# Thesis, Table 3.3: a random order and BM25.
RANDOM = {"DCG@1": 1.472, "DCG@3": 3.148, "DCG@5": 4.349, "DCG@10": 6.693, "MRR@10": 0.577}
BM25 = {"DCG@1": 2.211, "DCG@3": 4.656, "DCG@5": 6.377, "DCG@10": 9.544, "MRR@10": 0.716}
RANDOM_NDCG = 0.317  # de Haan and Hager 2024, Tables 1 and 2
PROMISE = 7.5
"""DCG@10 of a ranking by what tokens can say of attraction: about that of the pointwise naive
reranker on the authors' own features, 7.546. It fixes the agreement of annotators and users."""


def rewards(scores: np.ndarray, labels: np.ndarray, where: np.ndarray) -> dict[str, float]:
    """Mean DCG, MRR and nDCG of rankings: arrays [queries, documents]."""
    labels = np.where(where, labels, 0)
    order = np.argsort(-np.where(where, scores, -np.inf), axis=1)[:, :10]
    top = np.take_along_axis(labels, order, axis=1)
    dcg = np.cumsum((2.0**top - 1) * DISCOUNT, axis=1)
    ideal = (2.0 ** -np.sort(-labels, axis=1)[:, :10] - 1) @ DISCOUNT
    first = np.where((top >= 1).any(1), 1 / (1 + np.argmax(top >= 1, axis=1)), 0)
    return {
        **{f"DCG@{k}": dcg[:, k - 1].mean() for k in (1, 3, 5, 10)},
        "MRR@10": first.mean(),
        "nDCG@10": np.divide(dcg[:, -1], ideal, out=0 * ideal, where=ideal > 0).mean(),
    }


@cache
def scores_of_bm25(queries: float, head: float, pool: float) -> np.ndarray:
    """[queries, LARGEST_POOL] BM25 of the annotated documents. It needs no more of the law."""
    world = World(SESSIONS, SEED, Law.read().but(queries=queries, head=head, pool=pool))
    query, length = world.annotated(ANNOTATED)
    row, slot = there = np.nonzero(np.arange(LARGEST_POOL) < length[:, None])
    traits = world.candidates(query, LARGEST_POOL).traits[there]
    texts = document_tokens(world.seed, query[row], slot, traits)
    tokens = query_tokens(world.seed, query[row])
    found = np.zeros((len(query), LARGEST_POOL))
    found[there] = lexical_features(tokens, *texts, collection(world))[:, 0]
    return found


def annotated(law: Law, *, texts: bool = True) -> dict[str, dict[str, float]]:
    """What rankings of annotated documents are worth."""
    world = World(SESSIONS, SEED, law)
    query, length = world.annotated(ANNOTATED)
    found = world.candidates(query, LARGEST_POOL)
    where = np.arange(LARGEST_POOL) < length[:, None]
    labels = world.labels(found.relevance)
    rng = stream("calibration of annotations")
    orders = [rewards(rng.random(labels.shape), labels, where) for _ in range(10)]
    signal = world.promise(found.traits)
    best = World(SESSIONS, SEED, law.but(agreement=1.0)).promise(found.traits)
    return {
        "random": {name: np.mean([each[name] for each in orders]) for name in orders[0]},
        "promise": rewards(signal, labels, where),
        "policy": rewards(found.score, labels, where),
        "labels": rewards(best, labels, where),
        "pool": {"mean": length.mean(), "overlap": overlap(world, query)},
        "shares": dict(enumerate(np.bincount(labels[where], minlength=5) / where.sum())),
    } | (
        {"bm25": rewards(scores_of_bm25(law.queries, law.head, law.pool), labels, where)}
        if texts
        else {}
    )


def overlap(world: World, query: np.ndarray) -> float:
    """Share of annotated queries that the train parts asked."""
    train = np.concatenate([page.query for part in (1, 2, 3) for page in world.pages(part)])
    return float(np.isin(query, train).mean())


def logged(law: Law, users: str, sessions: int = SESSIONS) -> dict:
    """What is published of the log."""
    world = World(sessions, SEED, law, users)
    parts = [list(world.pages(part)) for part in range(PARTS)]

    def joined(name: str, some: list) -> np.ndarray:
        return np.concatenate([getattr(page, name) for pages in some for page in pages])

    found = {}
    for split, some in (("train", parts[1:]), ("test", parts[:1])):
        query, where = joined("query", some), joined("where", some)
        pairs = np.unique((query[:, None] * CANDIDATES + joined("slot", some))[where])
        urls = world.urls(*np.divmod(pairs, CANDIDATES))
        found[f"queries, {split}"] = len(np.unique(query)) / len(query)
        found[f"pairs, {split}"] = len(pairs) / where.sum()
        found[f"urls, {split}"] = len(np.unique(urls)) / len(pairs)
    clicks, where = joined("clicks", parts), joined("where", parts)
    number = clicks.sum(1)
    shown = where.sum(0)
    return found | {
        "sessions": len(where) / sessions,
        "documents": where.sum() / len(where),
        "shown": where.mean(0),
        "clicks": number.mean(),
        "one": (number > 0).mean(),
        "two": (number > 1).mean(),
        "rates": clicks.sum(0)[:RANKS] / shown[:RANKS],
    }


# The search


def search() -> None:
    """Find the law, knob by knob, and write it to `baidu.yaml`."""
    law = Law.read()
    law = descend(law, ["queries", "head"], distance_of_queries, np.log, np.exp)
    law = descend(law, ["jitter"], distance_of_pairs, np.log, np.exp)
    law = descend(law, ["among", "pool"], distance_of_random, np.log, np.exp)
    law = solve(law, "match", lambda found: found["bm25"]["DCG@10"] - BM25["DCG@10"], 0.05, 0.85)
    law = solve(law, "agreement", lambda found: found["promise"]["DCG@10"] - PROMISE, 0.02, 0.9)
    law = descend(law, ["ranked", "level", "spread", "warmth"], distance_of_attraction)
    users = ["patience", "unsatisfied", "readers", "eta", "satisfied"]
    law = descend(law, users, distance_of_users)
    lines = yaml.safe_dump(asdict(law), sort_keys=False)
    FILE.write_text("# Written by `python -m twotowers.standins.calibrate_baidu search`.\n" + lines)


def solve(law: Law, name: str, excess, low: float, high: float) -> Law:
    """The law with the value at which an increasing or decreasing number is 0."""
    found = brentq(lambda x: excess(annotated(law.but(**{name: x}))), low, high, xtol=2e-3)
    return report(law.but(**{name: round(float(found), 3)}), [name])


def descend(law: Law, names: list[str], distance, there=None, back=None) -> Law:
    """The law with the values that come nearest to the targets."""
    bounded = ("patience", "unsatisfied", "readers", "ranked")
    start = [value_of(law, name) for name in names]
    outward = [there or (logit if name in bounded else np.positive) for name in names]
    inward = [back or (expit if name in bounded else np.positive) for name in names]

    def law_of(values) -> Law:
        pairs = zip(names, inward, values, strict=True)
        return moved(law, {name: round(float(turn(value)), 4) for name, turn, value in pairs})

    begin = np.array([turn(value) for turn, value in zip(outward, start, strict=True)])
    simplex = np.array([begin, *(begin + 0.4 * np.eye(len(names)))])
    options = {"initial_simplex": simplex, "maxfev": 60 * len(names), "xatol": 2e-3, "fatol": 1e-7}
    found = minimize(
        lambda values: distance(law_of(values)), begin, method="Nelder-Mead", options=options
    )
    print(f"{found.fun:.2e} after {found.nfev}", file=sys.stderr)
    return report(law_of(found.x), names)


def report(law: Law, names: list[str]) -> Law:
    print({name: value_of(law, name) for name in names}, file=sys.stderr, flush=True)
    return law


def value_of(law: Law, name: str) -> float:
    return getattr(law.users, name) if hasattr(law.users, name) else getattr(law, name)


def moved(law: Law, values: dict[str, float]) -> Law:
    users = {name: value for name, value in values.items() if hasattr(law.users, name)}
    others = {name: value for name, value in values.items() if name not in users}
    return law.but(**others, users=replace(law.users, **users))


def apart(found: float, wanted: float) -> float:
    return float(np.log(max(found, 1e-9) / wanted) ** 2)


def distance_of_queries(law: Law) -> float:
    world = World(400_000, SEED, law)
    query = world.asked(np.arange(400_000))
    test, train = query[:100_000], query[100_000:]
    return sum(
        apart(len(np.unique(some)) / len(some), QUERIES[split])
        for split, some in (("train", train), ("test", test))
    )


def distance_of_pairs(law: Law) -> float:
    found = logged(law, "position_based")
    return sum(apart(found[f"pairs, {split}"], PAIRS[split]) for split in PAIRS)


def distance_of_random(law: Law) -> float:
    found = annotated(law, texts=False)["random"]
    return apart(found["MRR@10"], RANDOM["MRR@10"]) + apart(found["nDCG@10"], RANDOM_NDCG)


def distance_of_clicks(found: dict) -> float:
    """Click rates of position 1 and, relative to it, of the others; sessions with clicks."""
    rates = found["rates"]
    wanted = {"clicks": CLICKS, "one": ONE, "two": TWO}
    total = sum(apart(found[name], each) for name, each in wanted.items()) + apart(rates[0], FIRST)
    shares = [apart(*each) for each in zip(rates[1:] / rates[0], RATES[1:], strict=True)]
    # Few pages have a tenth position.
    return total + np.mean(shares[:-1]) + shares[-1] / 30


def distance_of_attraction(law: Law) -> float:
    """Position-based users: their click rate over their examination is the mean attraction."""
    return distance_of_clicks(logged(law, "position_based"))


def distance_of_users(law: Law) -> float:
    return distance_of_clicks(logged(law, "mixed"))


if __name__ == "__main__":
    search()

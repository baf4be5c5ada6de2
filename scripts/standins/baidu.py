"""`baidu_mlm`, by published statistics of the real set.

Nothing is fitted to clicks here, no ranker is trained, and no embedding is made. The search takes
seven minutes, knob by knob, and writes `baidu.yaml`.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

import numpy as np
import yaml
from scipy.optimize import brentq

from scripts.filling import markdown
from scripts.standins.targets import SEED, Tables, Target, apart, descend
from scripts.standins.uva import CLICKS, DOCUMENTS, ONE, PAIRS, QUERIES, RANDOM_NDCG, RATES, TWO
from twotowers.claims.metrics import dcg, mrr, ndcg
from twotowers.randomness import stream
from twotowers.standins.baidu import (
    CANDIDATES,
    FILE,
    LABELS,
    LARGEST_POOL,
    OVERLAP,
    PARTS,
    POOL,
    PROPENSITIES,
    SHOWN,
    TOO_SHORT,
    USERS,
    Law,
    World,
)
from twotowers.standins.baidu_files import COLLECTION, collection
from twotowers.standins.baidu_texts import document_tokens, query_tokens
from twotowers.text.lexical import lexical_features

SESSIONS, ANNOTATED = 40_000, 1_500
RANKS = 10
# Thesis, Table 3.1, train and test parts; the rest of it is in `scripts.standins.uva`.
URLS = {"train": 9_455_953 / 11_715_447, "test": 3_557_825 / 4_209_900}
FIRST = 0.3395
"""Click rate of the first rank."""
# Thesis, Table 3.3: a random order and BM25.
RANDOM = {"DCG@1": 1.472, "DCG@3": 3.148, "DCG@5": 4.349, "DCG@10": 6.693, "MRR@10": 0.577}
BM25 = {"DCG@1": 2.211, "DCG@3": 4.656, "DCG@5": 6.377, "DCG@10": 9.544, "MRR@10": 0.716}
PROMISE = 7.5
"""DCG@10 of a ranking by what tokens can say of attraction: about that of the pointwise naive
reranker on the authors' own features, 7.546. It fixes the agreement of annotators and users."""


def tables() -> Tables:
    law = Law.read()
    own, others = targets(law), annotated(law, texts=False)
    predicted = [
        ("the production ranker, DCG@10 and nDCG@10 (published 7.33 and .353)", "policy"),
        ("what tokens say of relevance at most, DCG@10 and nDCG@10", "labels"),
    ]
    worth = [
        (words, f"{others[name]['DCG@10']:.2f}, {others[name]['nDCG@10']:.3f}")
        for words, name in predicted
    ]
    measured = (
        f"Measured on {SESSIONS:,} sessions, {ANNOTATED:,} annotated queries, seed {SEED}. BM25 "
        f"counts a collection of {COLLECTION * CANDIDATES:,} documents of other queries."
    )
    further = markdown(["quantity", "stand-in"], worth, "---:")
    return {"measured": measured, **own, "further": further}


def targets(law: Law) -> dict[str, list[Target]]:
    """All that was calibrated, by topic."""
    within = Target.within
    logs, ranked = {users: logged(law, users) for users in USERS}, annotated(law)
    log, other = logs["mixed"], logs["position_based"]
    parts = [
        ("unique queries a session", "queries", QUERIES),
        ("unique pairs an impression", "pairs", PAIRS),
        ("unique documents a pair", "urls", URLS),
    ]
    shown = enumerate(zip(log["shown"][:12], SHOWN[:12], strict=True), start=1)
    raw = raw_shares(World(SESSIONS, SEED, law))
    attractions = enumerate(zip(other["rates"], PROPENSITIES, FIRST * RATES, strict=False), start=1)
    return {
        "log": [
            *(
                within(words, log[f"{name}, {split}"], wanted[split], 0.02, split)
                for words, name, wanted in parts
                for split in wanted
            ),
            within("documents a session", log["documents"], DOCUMENTS, 0.01),
            # Few pages have more than nine.
            *(
                within("sessions with a document, at rank", *each, 0.02 if k < 10 else 0.15, k)
                for k, each in shown
            ),
            within('documents that are "what others searched"', raw["searched"], 0.09, 0.05),
            within("documents without content", raw["empty"], 0.13, 0.05),
            within("queries that are too short", 1 - log["sessions"], TOO_SHORT, 0.15),
        ],
        "mixed": clicks_of_users(log),
        "position-based": [
            *clicks_of_users(other),
            *(
                within("click rate over examination, at rank", rate / seen, wanted / seen, 0.15, k)
                for k, (rate, seen, wanted) in attractions
                if k < 10
            ),
        ],
        "annotations": [
            within("documents a query", ranked["pool"]["mean"], POOL, 0.02),
            within("queries asked in the train parts", ranked["pool"]["overlap"], OVERLAP, 0.02),
            *(
                within("share of label", ranked["shares"][label], share, 0.04, label)
                for label, share in enumerate(LABELS[:4])
            ),
            *(within("random order", ranked["random"][k], v, 0.03, k) for k, v in RANDOM.items()),
            within("random order", ranked["random"]["nDCG@10"], RANDOM_NDCG, 0.03, "nDCG@10"),
            *(within("BM25", ranked["bm25"][k], v, 0.05, k) for k, v in BM25.items()),
            within(
                "what tokens say of attraction, DCG@10", ranked["promise"]["DCG@10"], PROMISE, 0.02
            ),
        ],
    }


def clicks_of_users(log: dict) -> list[Target]:
    rates = zip(log["rates"][1:] / log["rates"][0], RATES[1:], strict=True)
    return [
        Target.within("clicks a session", log["clicks"], CLICKS, 0.08),
        Target.within("sessions with a click", log["one"], ONE, 0.08),
        Target.within("sessions with two", log["two"], TWO, 0.08),
        Target.within("click rate at 1", log["rates"][0], FIRST, 0.1),
        *(
            Target.within("click rate over that of rank 1, at rank", *each, 0.2, k)
            for k, each in enumerate(rates, start=2)
        ),
    ]


def raw_shares(world: World) -> dict[str, float]:
    """Shares of placeholders among all documents before they are dropped."""
    kept = empty = searched = 0
    for page in world.pages(1):
        raw = world.raw(page)
        kept, empty = kept + page.where.sum(), empty + raw.empty.sum()
        searched += (raw.searched > 0).sum()
    total = kept + empty + searched
    return {"searched": searched / total, "empty": empty / total}


def rewards(scores: np.ndarray, labels: np.ndarray, where: np.ndarray) -> dict[str, float]:
    """Mean DCG, MRR and nDCG of rankings: arrays [queries, documents]."""
    found = {f"DCG@{k}": dcg(scores, labels, where=where, topn=k) for k in (1, 3, 5, 10)}
    found |= {f"{name}@10": each(scores, labels, where=where) for name, each in METRICS.items()}
    return {name: float(each.mean()) for name, each in found.items()}


METRICS = {"MRR": mrr, "nDCG": ndcg}


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
    law, scales = Law.read(), ("queries", "head", "jitter", "among", "pool")
    law = descend(law, ["queries", "head"], distance_of_queries, positive=scales)
    law = descend(law, ["jitter"], distance_of_pairs, positive=scales)
    law = descend(law, ["among", "pool"], distance_of_random, positive=scales)
    law = solve(law, "match", lambda found: found["bm25"]["DCG@10"] - BM25["DCG@10"], 0.05, 0.85)
    law = solve(law, "agreement", lambda found: found["promise"]["DCG@10"] - PROMISE, 0.02, 0.9)
    law = descend(law, ["ranked", "level", "spread", "warmth"], distance_of_attraction)
    users = ["patience", "unsatisfied", "readers", "eta", "satisfied"]
    law = descend(law, users, distance_of_users)
    lines = yaml.safe_dump(asdict(law), sort_keys=False)
    FILE.write_text("# Written by `python -m scripts.standins --search baidu`.\n" + lines)


def solve(law: Law, name: str, excess, low: float, high: float) -> Law:
    """The law with the value at which an increasing or decreasing number is 0."""
    found = brentq(lambda x: excess(annotated(law.but(**{name: x}))), low, high, xtol=2e-3)
    return law.but(**{name: round(float(found), 3)})


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

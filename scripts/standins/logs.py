"""What is measured of generated click logs: `wscd`, `baidu_ultr_uva` and `baidu_mlm`.

To `wscd` six models are fitted, by counting or EM and by gradient descent, and to `baidu_ultr_uva`
two, as the settings of clax2025 do it; to `baidu_mlm` no model of clicks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from twotowers.claims.metrics import logged_ndcg, of_each_query
from twotowers.claims.statistics import select
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import load_paper
from twotowers.files.rankings import Rankings
from twotowers.files.yamls import read_yaml
from twotowers.jobs.fit import fit_setting
from twotowers.logs.sessions import page_batch, write_sessions
from twotowers.randomness import stream
from twotowers.rankers.trees import fit_lambdamart
from twotowers.root import ROOT
from twotowers.splits import DOCUMENTS, LOG, PAGES
from twotowers.standins import baidu as texts
from twotowers.standins import uva as vectors
from twotowers.standins.baidu_files import collection
from twotowers.standins.baidu_texts import document_tokens, query_tokens
from twotowers.standins.lexical import lexical_features
from twotowers.standins.wscd import LAW, draw

METRICS = ("dcg@1", "dcg@3", "dcg@5", "dcg@10", "mrr@10", "ndcg@10")
SEED = 0  # as in twotowers.workflow.descriptions
RANKS = 10
COUNTED = ("em-gctr", "em-rctr", "em-dctr", "em-pbm")
GRADIENT = ("gradient-dctr", "gradient-pbm")
REMEMBERING = ("gradient-ubm", "gradient-dbn")
"""Settings of clax2025."""


def wscd(sessions: int = 200_000) -> dict:
    """Half of the log trains, a quarter is held out, as in clax2025."""
    drawn = zip(*draw(stream("wscd stand-in", SEED), sessions, LAW), strict=True)
    query, documents, clicks = (np.concatenate(column) for column in drawn)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pages.parquet"
        write_sessions(path, [page_batch(query, documents, clicks, LOG)])
        fits = fits_of({LOG: path}, (*COUNTED, *GRADIENT, *REMEMBERING))
    return {
        "perplexity of GCTR, RCTR, DCTR, PBM": [perplexity(fits[name]) for name in COUNTED],
        "perplexity of DCTR and PBM, by gradient": [perplexity(fits[name]) for name in GRADIENT],
        "conditional perplexity of UBM and DBN, by gradient": [
            perplexity(fits[name], "mean_conditional_perplexity") for name in REMEMBERING
        ],
        "pairs per session": len(np.unique(documents)) / sessions,
    }


def fits_of(files: Mapping[str, Path], names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """What clax2025 measures at scale laptop, by the names of settings."""
    config = read_yaml(ROOT / "config.yaml") | {"scale": "laptop", "papers": ["clax2025"]}
    settings = load_paper("clax2025", read_config(config)).settings
    return {name: fit_setting(files, settings[name], seed=1) for name in names}


def perplexity(fit: pd.DataFrame, metric: str = "mean_perplexity") -> float:
    """By counting and EM under the lower prior, which is the thesis's."""
    rows = select(fit, metric=metric)
    prior = rows["prior_mean"].min() if "prior_mean" in rows else None
    return (rows if prior is None else select(rows, prior_mean=prior))["value"].item()


def uva(sessions: int = 40_000, queries: int = 4_000) -> dict:
    blocks = list(vectors.draw(sessions, seed=SEED))
    clicks, where = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("clicks", "where")
    )
    rates, number = clicks.sum(0) / where.sum(0), clicks.sum(1)
    rng = stream("calibration of annotations")
    documents = vectors.candidates(rng, queries)
    labels = vectors.labels_of(documents.relevance)
    chance, whole = rng.random(labels.shape), np.ones(labels.shape, bool)
    with TemporaryDirectory() as folder:
        files = {LOG: Path(folder) / PAGES, DOCUMENTS: Path(folder) / DOCUMENTS}
        for path in files.values():
            vectors.write(path, path.name, name=vectors.NAME, size=sessions, seed=SEED)
        fits = fits_of(files, ("counts-rctr", "features-pbm"))
    rankers = chance, documents.score, documents.signal
    random, policy, knowing = (worth(scores, labels, whole) for scores in rankers)
    ranks, features = map(perplexity, fits.values())
    pairs = sum(len(np.unique(block.documents[block.where])) for block in blocks)
    return {
        "documents per session": where.sum() / sessions,
        "queries per session": sum(len(np.unique(block.query)) for block in blocks) / sessions,
        "query-document pairs per impression": pairs / where.sum(),
        "clicks per session": number.mean(),
        "sessions with a click": (number > 0).mean(),
        "sessions with two clicks": (number > 1).mean(),
        "click rate over that of rank 1, ranks 2 to 10": rates[1:] / rates[0],
        "perplexity of RCTR less that of PBM by features": ranks - features,
        "DCG@10, random order": random[3],
        "nDCG@10, random order": random[5],
        "DCG@10, logging policy": policy[3],
        "DCG@10, a ranker that knows what columns say of labels": knowing[3],
    }


def baidu(sessions: int = 40_000, queries: int = 1_500) -> dict:
    law = texts.Law.read()
    worlds = {users: texts.World(sessions, SEED, law, users) for users in texts.USERS}
    mixed, glancing = (log_of(world) for world in worlds.values())
    world = worlds["mixed"]
    return {
        **published_of_log(mixed, sessions),
        **placeholders(world),
        **{f"mixed users: {name}": each for name, each in clicks_of(mixed).items()},
        **{f"position-based users: {name}": each for name, each in clicks_of(glancing).items()},
        "position-based users: click rate over examination, ranks 1 to 9": (
            rates_of(glancing) / np.array(texts.PROPENSITIES[:RANKS])
        )[:9],
        **orders(world, mixed),
        **annotations(world, mixed, queries),
    }


def worth(scores: np.ndarray, labels: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Mean METRICS."""
    values = of_each_query(scores, labels, where=where)
    return np.array([values[name].mean() for name in METRICS])


def log_of(world: texts.World) -> dict[str, list[np.ndarray]]:
    """Arrays of each part: query, slot, clicks and where."""
    parts = [list(world.pages(part)) for part in range(texts.PARTS)]
    return {
        name: [np.concatenate([getattr(page, name) for page in part]) for part in parts]
        for name in ("query", "slot", "clicks", "where", "traits")
    } | {"world": world}


def rates_of(log: Mapping) -> np.ndarray:
    clicks, where = (np.concatenate(log[name]) for name in ("clicks", "where"))
    return clicks.sum(0)[:RANKS] / where.sum(0)[:RANKS]


def clicks_of(log: Mapping) -> dict:
    number, rates = np.concatenate(log["clicks"]).sum(1), rates_of(log)
    means = [each.mean() for each in (number, number > 0, number > 1)]
    return {
        "clicks a session, sessions with a click, with two": means,
        "click rate at rank 1": rates[0],
        "click rate over that of rank 1, ranks 2 to 10": rates[1:] / rates[0],
    }


def published_of_log(log: Mapping, sessions: int) -> dict:
    """Of the train parts 1 to 3, and of the test part 0."""
    shares = []
    for part in (slice(1, None), slice(0, 1)):
        query, slot, where = (
            np.concatenate(log[name][part]) for name in ("query", "slot", "where")
        )
        pairs = np.unique((query[:, None] * texts.CANDIDATES + slot)[where])
        urls = log["world"].urls(*np.divmod(pairs, texts.CANDIDATES))
        counts = len(np.unique(query)), len(pairs), len(np.unique(urls))
        shares.append(np.divide(counts, (len(query), where.sum(), len(pairs))))
    where = np.concatenate(log["where"])
    unique = ("queries a session", "pairs an impression", "documents a pair")
    return {
        **{f"unique {name}: train, test": np.take(shares, k, 1) for k, name in enumerate(unique)},
        "documents a session": where.sum() / len(where),
        "sessions with a document, at ranks 1 to 9": where.mean(0)[:9],
        "sessions with a document, at ranks 10 to 12": where.mean(0)[9:12],
        "queries that are too short": 1 - len(where) / sessions,
    }


def placeholders(world: texts.World) -> dict:
    """Shares of placeholders among all documents before they are dropped."""
    kept = empty = searched = 0
    for page in world.pages(1):
        raw = world.raw(page)
        kept, empty = kept + page.where.sum(), empty + raw.empty.sum()
        searched += (raw.searched > 0).sum()
    total = kept + empty + searched
    return {
        'documents that are "what others searched"': searched / total,
        "documents without content": empty / total,
    }


def orders(world: texts.World, log: Mapping, pages: int = 4_000) -> dict:
    """How well the logged order is known: nDCG@10 with label 1 / k at position k, on test pages.

    Trees learn it from so many pages of a train part, as those of dehaan2024 do.
    """
    lists = []
    for part in (1, 0):
        where = log["where"][part][:pages]
        row, at = np.nonzero(where)
        slot, traits = (log[name][part][:pages][where] for name in ("slot", "traits"))
        features = lexical(world, log["query"][part][row], slot, traits)
        lists.append((Rankings(row, at, np.zeros(len(row)), features), traits, where))
    (train, traits, _), (test, tested, where) = lists
    own, each = np.unique(log["query"][0][:pages], return_inverse=True)
    score = world.candidates(own).score[each[:, None], log["slot"][0][:pages]]
    target = np.maximum(RANKS - 1 - train.document, 0)

    def learnt(features: np.ndarray, others: np.ndarray) -> np.ndarray:
        known = replace(train, features=features)
        predict = fit_lambdamart(known, target, trees=200, leaves=10, learning_rate=0.05)
        scores = np.zeros(where.shape)
        scores[where] = predict(others)
        return scores

    measured = {
        "the ranker's own scores": score,
        "trees on traits of documents": learnt(traits, tested),
        "trees on lexical columns": learnt(train.features, test.features),
    }
    return {
        f"nDCG@10 of the logged order: {name}": logged_ndcg(scores, where=where).mean()
        for name, scores in measured.items()
    }


def annotations(world: texts.World, log: Mapping, queries: int) -> dict:
    """What rankings of annotated documents are worth."""
    query, length = world.annotated(queries)
    documents = world.candidates(query, texts.LARGEST_POOL)
    where = np.arange(texts.LARGEST_POOL) < length[:, None]
    labels = world.labels(documents.relevance)

    judged = labels, where
    rng = stream("calibration of annotations")
    chance = np.mean([worth(rng.random(labels.shape), *judged) for _ in range(10)], axis=0)
    agreeing = texts.World(world.sessions, SEED, world.law.but(agreement=1.0))
    asked = np.concatenate(log["query"][1:])
    agreed = agreeing.promise(documents.traits)
    return {
        "annotated documents a query": length.mean(),
        "annotated queries asked in the train parts": np.isin(query, asked).mean(),
        "shares of labels 0 to 3": (np.bincount(labels[where], minlength=5) / where.sum())[:4],
        "random order: DCG@1, DCG@3, DCG@5, DCG@10, MRR@10, nDCG@10": chance,
        "BM25: DCG@1, DCG@3, DCG@5, DCG@10, MRR@10": worth(bm25(world, query, where), *judged)[:5],
        "DCG@10, what tokens say of attraction": worth(world.promise(documents.traits), *judged)[3],
        "DCG@10 and nDCG@10, production ranker": worth(documents.score, *judged)[[3, 5]],
        "DCG@10 and nDCG@10, what tokens say of relevance at most": worth(agreed, *judged)[[3, 5]],
    }


def bm25(world: texts.World, query: np.ndarray, where: np.ndarray) -> np.ndarray:
    """[queries, LARGEST_POOL] of the annotated documents."""
    row, slot = there = np.nonzero(where)
    traits = world.candidates(query, texts.LARGEST_POOL).traits[there]
    scores = np.zeros(where.shape)
    scores[there] = lexical(world, query[row], slot, traits)[:, 0]
    return scores


def lexical(world: texts.World, query, slot, traits) -> np.ndarray:
    """[rows, columns] of documents."""
    tokens = document_tokens(world.seed, query, slot, traits)
    return lexical_features(query_tokens(world.seed, query), *tokens, collection(world))

"""What is measured of generated rankings: `mslr30k`, and the sets of long lists."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from twotowers.claims.metrics import ndcg
from twotowers.datasets.preprocess import preprocess, preprocess_stratified, signed_log1p
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import Paper, load_paper
from twotowers.experiment.simulated import Policy, draw_cells
from twotowers.files.rankings import Rankings, mask, pad
from twotowers.files.yamls import read_yaml
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.logs.cells import Pairs
from twotowers.logs.counts import of_cells
from twotowers.logs.policies import ScoredPairs
from twotowers.methods.descent import count_loss
from twotowers.methods.task import Split
from twotowers.rankers.training import train_ranker
from twotowers.rankers.trees import fit_lambdamart, some_queries
from twotowers.root import ROOT
from twotowers.splits import SPLITS
from twotowers.standins.rankings import generate
from twotowers.towers.two_towers import two_towers

SEED = 0  # as in twotowers.workflow.descriptions
RANDOM_ORDERS = 20
TOWER = "example-deep"
"""The setting of hager2025 whose deep tower, training and sessions are taken."""
LONG = {
    "yahoo_ltr": {"train": 4000, "test": 2000, "most": 49},
    "istella_s_ltr": {"train": 1500, "test": 1000, "most": 147},
}
"""Queries of both sets of long lists, and the 90th percentile in print, at which they are cut."""
LABELLED, DRAWS = 20, 10
ALIKE = 200
"""Queries whose columns are compared."""


def mslr(config=ROOT / "config.yaml") -> dict:
    """As the laptop scale draws and prepares it; policy and tower are trained as published."""
    settings = read_config(read_yaml(config) | {"scale": "laptop", "replace": {}}, config)
    paper = load_paper("hager2025", settings)
    sizes = settings.datasets["mslr30k"].standin["laptop"]
    raw = {name: generate("mslr30k", name, queries=sizes[name], seed=SEED) for name in SPLITS}
    places = paper.datasets["mslr30k"].top
    ready = {name: preprocess(lists, top=places) for name, lists in raw.items()}
    test, rng = ready["test"], np.random.default_rng(SEED)
    orders = [mean_ndcg(rng.random(len(test.label)), test) for _ in range(RANDOM_ORDERS)]
    policy, tower = (
        np.mean([mean_ndcg(scores_by(ready, paper, seed), test) for seed in paper.seeds])
        for scores_by in (by_policy, by_tower)
    )
    label = np.concatenate([lists.label for lists in raw.values()])
    lengths = np.concatenate([lists.lengths for lists in raw.values()])
    best = [np.maximum.reduceat(lists.label, lists.offsets[:-1]) for lists in raw.values()]
    return {
        "shares of labels 0 to 4": np.bincount(label.astype(int), minlength=5) / len(label),
        **lengths_of(lengths),
        "documents per query, shortest": lengths.min(),
        f"share of queries with fewer than {places} documents": np.mean(lengths < places),
        f"share of {places} places that stay empty": np.maximum(1 - lengths / places, 0).mean(),
        "share of queries without relevant document": np.mean(np.concatenate(best) < 1),
        "share of feature variance between queries": likeness(ready),
        "nDCG@10, random order": np.mean(orders),
        "nDCG@10, deep logging policy": policy,
        "nDCG@10, deep tower, randomised clicks": tower,
        **columns_of(raw["test"]),
    }


def mean_ndcg(scores: np.ndarray, lists: Rankings) -> float:
    """The mean nDCG@10 of lists, of [rows] scores; lists without relevant document count 0."""
    *columns, where = lists.padded(scores, lists.label)
    return float(ndcg(*columns, where=where).mean())


def lengths_of(lengths: np.ndarray) -> dict:
    return {
        "documents per query, mean": lengths.mean(),
        "documents per query, median": np.median(lengths),
        "documents per query, 90th percentile": np.percentile(lengths, 90),
        "documents per query, longest": lengths.max(),
    }


def likeness(ready: dict[str, Rankings]) -> float:
    """How much documents of a query resemble each other, over all preprocessed splits.

    The more they differ, the better a policy can sort them by features, and the stronger is its
    effect on clicks.
    """
    between, total = 0.0, 0.0
    rows = sum(len(lists.label) for lists in ready.values())
    centre = sum(lists.features.sum(0, dtype=float) for lists in ready.values()) / rows
    for lists in ready.values():
        centred = lists.features - centre
        sums = np.add.reduceat(centred, lists.offsets[:-1])
        between += (sums**2 / lists.lengths[:, None]).sum()
        total += (centred**2).sum()
    return between / total


def by_policy(ready: dict[str, Rankings], paper: Paper, seed: int) -> np.ndarray:
    """Test scores of the deep ranker, trained on the labels, without noise."""
    train, test = ready["train"], ready["test"]
    options = paper.rankers["deep"].plain()
    return train_ranker("deep", train, train.label, options, seed=seed)(test, test.label)


def by_tower(ready: dict[str, Rankings], paper: Paper, seed: int) -> np.ndarray:
    """Test scores of the deep tower, trained on simulated clicks on uniformly random rankings."""
    losses = (click_loss(split, ready[split], paper, seed) for split in SPLITS[:2])
    features = ready["test"].features
    model = two_towers("deep", width=features.shape[1], positions=paper.positions, seed=seed)
    settings = FitSettings(**paper.settings[TOWER].training.arguments())
    fitted = fit(model, *losses, settings, lanes=1, seed=seed)
    return np.asarray(fitted.model(0).relevance(jnp.asarray(features)))


def click_loss(split: str, lists: Rankings, paper: Paper, seed: int):
    """The objective of a split's clicks, simulated at temperature 1."""
    pairs = Pairs(lists.query, lists.document, lists.offsets)
    random = Policy(ranker="expert", strength=0.0, temperature=1.0)
    log = paper.settings[TOWER].log.model_copy(update={"policy": random})
    policy = ScoredPairs(pairs, relevance=lists.label, score=lists.label)
    drawn = (each.counts for each in draw_cells(log, split, policy, seed=seed))
    counts = of_cells(drawn, len(lists.lengths), paper.positions)
    inputs = pad(lists.features, lists.offsets, paper.positions)
    return count_loss(Split(inputs, mask(lists.lengths, paper.positions), None, counts))


def columns_of(raw: Rankings) -> dict:
    """Statistics of the columns."""
    features, starts = raw.features, raw.offsets[:-1]
    constant = np.maximum.reduceat(features, starts) == np.minimum.reduceat(features, starts)
    # Every 20th row is enough for two digits of a correlation.
    correlation = np.abs(np.corrcoef(signed_log1p(features[::20]).T))
    np.fill_diagonal(correlation, 0)
    return {
        "columns": features.shape[1],
        "columns with negative values": (features < 0).any(0).sum(),
        "smallest and largest value": [features.min(), features.max()],
        "columns of whole numbers": (features == np.round(features)).all(0).sum(),
        "columns that are zero in most rows": ((features == 0).mean(0) > 0.5).sum(),
        "columns constant within each query": constant.all(0).sum(),
        "columns correlated above .9 with another, after log1p": (correlation.max(0) > 0.9).sum(),
    }


def long_lists(name: str) -> dict:
    """Long lists: cut, ranked and learnt from as the thesis does it.

    Its production ranker is trained ten times, and the same trees once on all labels.
    """
    sizes = LONG[name]
    raw = {each: generate(name, each, queries=sizes[each], seed=SEED) for each in ("train", "test")}
    options = {"most": sizes["most"], "log1p": name.startswith("istella"), "seed": SEED}
    train, test = (preprocess_stratified(lists, **options) for lists in raw.values())

    def trained(labelled: Rankings) -> float:
        return mean_ndcg(fit_lambdamart(labelled, labelled.label)(test.features), test)

    few = (train.take(some_queries(train, LABELLED, seed=seed)) for seed in range(DRAWS))
    return {
        "columns": train.features.shape[1],
        **alike(train.take(np.arange(ALIKE))),
        **lengths_of(raw["train"].lengths),
        "nDCG@10, LambdaMART on 20 queries": np.mean([trained(each) for each in few]),
        "nDCG@10, LambdaMART on all training queries": trained(train),
    }


def alike(lists: Rankings) -> dict:
    """How columns go along with labels and with each other, by ranks within queries."""
    ranks, with_label = [], []
    for start, stop in pairwise(lists.offsets):
        rank = rankdata(lists.features[start:stop], axis=0)
        rank = (rank - rank.mean(0)) / np.maximum(rank.std(0), 1e-9)
        label = lists.label[start:stop]
        if label.std():
            label = rankdata(label)
            ranks.append(rank)
            with_label.append((rank * ((label - label.mean()) / label.std())[:, None]).mean(0))
    mean, error = np.mean(with_label, 0), np.std(with_label, 0) / len(with_label) ** 0.5
    size, correlation = np.abs(mean), np.corrcoef(np.vstack(ranks).T)
    shown = size > 3 * error
    parts = np.linalg.eigvalsh(correlation)[::-1].cumsum() / len(correlation)
    np.fill_diagonal(correlation, 0)
    return {
        "share of columns correlated with labels, by three standard errors": shown.mean(),
        "correlation with labels: median column over best one": np.median(size) / size.max(),
        "largest correlation with another column, median": np.median(np.abs(correlation).max(0)),
        "variance in one component, in ten": parts[[0, 9]],
    }

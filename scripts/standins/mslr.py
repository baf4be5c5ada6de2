"""`mslr30k`, for MSLR-WEB30K Fold 1, as the laptop scale draws and prepares it.

The published logging policy and the published deep tower are trained on it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from scripts.filling import markdown
from scripts.standins.targets import SEED, Tables, Target, mean_of
from twotowers.claims.metrics import ndcg
from twotowers.datasets.preprocess import preprocess, signed_log1p
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import Paper, load_paper
from twotowers.experiment.simulated import Policy, draw_cells
from twotowers.files.rankings import Rankings, mask, pad
from twotowers.files.yamls import read_yaml
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.logs.cells import Pairs
from twotowers.logs.counts import Counts
from twotowers.logs.policies import ScoredPairs
from twotowers.methods.descent import count_loss
from twotowers.methods.task import Split
from twotowers.rankers.training import train_ranker
from twotowers.root import ROOT
from twotowers.splits import SPLITS
from twotowers.standins.rankings import generate
from twotowers.towers.two_towers import two_towers

NAME, PAPER, SCALE = "mslr30k", "hager2025", "laptop"
TOWER = "example-deep"
"""The setting whose deep tower, training and sessions are taken."""
RANDOM_ORDERS = 20
LABELS = (0.515, 0.325, 0.134, 0.019, 0.008)


def tables(config=ROOT / "config.yaml") -> Tables:
    settings = read_config(read_yaml(config) | {"scale": SCALE, "replace": {}}, config)
    paper = load_paper(PAPER, settings)
    sizes = settings.datasets[NAME].standin[SCALE].parts
    raw = {split: generate(NAME, split, queries=sizes[split], seed=SEED) for split in SPLITS}
    top = paper.datasets[NAME].top
    ready = {split: preprocess(rankings, top=top) for split, rankings in raw.items()}
    drawn = ", ".join(f"{size:,} {split}" for split, size in sizes.items())
    return {
        "drawn": f"Drawn: {drawn} queries, seed {SEED}; model seeds {list(paper.seeds)}.",
        NAME: [*statistics(raw, top), likeness(ready), *rankings_of(ready, paper)],
        "columns": markdown(["quantity", "stand-in", "real sample"], regimes(raw["test"]), "---:"),
    }


def statistics(raw: dict[str, Rankings], places: int) -> list[Target]:
    """Label shares and list lengths over all splits, before preprocessing to so many places."""
    label = np.concatenate([rankings.label for rankings in raw.values()])
    lengths = np.concatenate([rankings.lengths for rankings in raw.values()])
    best = np.concatenate(
        [np.maximum.reduceat(lists.label, lists.offsets[:-1]) for lists in raw.values()]
    )
    few, empty = np.mean(lengths < places), np.maximum(1 - lengths / places, 0).mean()
    per_query = "documents per query, "
    return [
        *(
            Target(f"share of label {grade}", np.mean(label == grade),
                   max(share - 0.01, 0), share + 0.01, f"{share:.3f}")
            for grade, share in enumerate(LABELS)
        ),
        Target(per_query + "median", np.median(lengths), 105, 113, "109", ",.0f"),
        Target(per_query + "mean", lengths.mean(), 116, 124, "120", ",.0f"),
        Target(per_query + "maximum", lengths.max(), 1000, 1251, "1,251", ",.0f"),
        Target(per_query + "minimum", lengths.min(), 1, 1, "1", ",.0f"),
        Target(f"share of queries with fewer than {places} documents", few, 0.005, 0.02,
               "0.011 (89 queries)"),
        Target(f"share of {places} places that stay empty", empty, 0.002, 0.01,
               "0.004 (89 queries)"),
        Target("share of queries without relevant document", np.mean(best < 1), 0.02, 0.04,
               "0.031"),
    ]  # fmt: skip


def likeness(ready: dict[str, Rankings]) -> Target:
    """How much documents of a query resemble each other, over all preprocessed splits.

    The more they differ, the better a policy can sort them by features, and the stronger is its
    effect on clicks.
    """
    between, total = 0.0, 0.0
    rows = sum(len(lists.label) for lists in ready.values())
    centre = sum(lists.features.sum(0, dtype=float) for lists in ready.values()) / rows
    for lists in ready.values():
        apart = lists.features - centre
        sums = np.add.reduceat(apart, lists.offsets[:-1])
        between += (sums**2 / lists.lengths[:, None]).sum()
        total += (apart**2).sum()
    words = "share of feature variance between queries"
    return Target(words, between / total, 0.34, 0.42, "0.382 (89 queries)")


def rankings_of(ready: dict[str, Rankings], paper: Paper) -> list[Target]:
    """nDCG@10 on the test queries: random order, deep logging policy, deep tower."""
    test, rng = ready["test"], np.random.default_rng(SEED)
    orders = [mean_of(ndcg, rng.random(len(test.label)), test) for _ in range(RANDOM_ORDERS)]
    policy = [mean_of(ndcg, by_policy(ready, paper, seed), test) for seed in paper.seeds]
    tower = [mean_of(ndcg, by_tower(ready, paper, seed), test) for seed in paper.seeds]
    return [
        Target("nDCG@10, random order", np.mean(orders), 0.54, 0.58, "0.561"),
        Target("nDCG@10, deep logging policy", np.mean(policy), 0.67, 0.73, "0.704"),
        Target("nDCG@10, deep tower, randomised clicks", np.mean(tower), 0.70, 0.76, "0.727"),
    ]


def by_policy(ready: dict[str, Rankings], paper: Paper, seed: int) -> np.ndarray:
    """Test scores of the deep ranker, trained on the labels, without noise."""
    train, test = ready["train"], ready["test"]
    options = paper.rankers["deep"].arguments()
    return train_ranker("deep", train, train.label, options, seed=seed)(test, test.label)


def by_tower(ready: dict[str, Rankings], paper: Paper, seed: int) -> np.ndarray:
    """Test scores of the deep tower, trained on simulated clicks on uniformly random rankings."""
    losses = (click_loss(split, ready[split], paper, seed) for split in SPLITS[:2])
    features = ready["test"].features
    model = two_towers(
        "deep", width=features.shape[1], pairs=0, positions=paper.positions, seed=seed
    )
    settings = FitSettings(**paper.settings[TOWER].training.arguments())
    fitted = fit(model, *losses, settings, lanes=1, seed=seed)
    return np.asarray(fitted.model(0).relevance(jnp.asarray(features)))


def click_loss(split: str, lists: Rankings, paper: Paper, seed: int):
    """The objective of a split's clicks, simulated at temperature 1."""
    pairs = Pairs(lists.query, lists.document, lists.offsets)
    random = Policy(ranker="expert", strength=0.0, temperature=1.0)
    log = paper.settings[TOWER].log.model_copy(update={"policy": random})
    policy = ScoredPairs(pairs, relevance=lists.label, score=lists.label)
    (drawn,) = draw_cells(log, split, policy, seed=seed)
    counts = Counts(drawn.counts.impressions[None], drawn.counts.clicks[None])
    inputs = pad(lists.features, lists.offsets, paper.positions)
    return count_loss(Split(inputs, mask(lists.lengths, paper.positions), None, counts))


def regimes(raw: Rankings) -> list[tuple[str, str, str]]:
    """Rows of a table: statistics of the columns, beside those of 89 real queries."""
    features, starts = raw.features, raw.offsets[:-1]
    constant = np.maximum.reduceat(features, starts) == np.minimum.reduceat(features, starts)
    # Every 20th row is enough for two digits of a correlation.
    correlation = np.abs(np.corrcoef(signed_log1p(features[::20]).T))
    np.fill_diagonal(correlation, 0)
    near = (correlation.max(0) > 0.9).sum()
    values = [
        ("columns", features.shape[1], "136"),
        ("columns with negative values", (features < 0).any(0).sum(), "23"),
        ("smallest value", features.min(), "-73"),
        ("largest value", features.max(), "1.6e+08"),
        ("columns of whole numbers", (features == np.round(features)).all(0).sum(), "40"),
        ("columns that are zero in most rows", ((features == 0).mean(0) > 0.5).sum(), "51"),
        ("columns constant within each query", constant.all(0).sum(), "5"),
        ("columns correlated above .9 with another, after log1p", near, "106"),
    ]
    return [(quantity, f"{value:.3g}", real) for quantity, value, real in values]

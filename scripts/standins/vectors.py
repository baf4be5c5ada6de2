"""The stand-ins with recurring vectors: prepared, ranked and displayed as chen2024 does it."""

from __future__ import annotations

import numpy as np

from papers.chen2024.judges.connectivity import GRAPH
from papers.chen2024.models.contextual import Contextual
from papers.chen2024.simulation import POSITIONS
from papers.chen2024.studies.connectivity import components, graph
from scripts.filling import markdown
from scripts.standins.targets import SEED, Tables
from twotowers.datasets.preprocess import preprocess_ultra
from twotowers.experiment.ranked_lists import Contexts, click_chance, contexts_of
from twotowers.files.rankings import Rankings, rank
from twotowers.files.yamls import read_yaml
from twotowers.fitting.alternating import LeastSquares, alternate
from twotowers.fitting.click_rates import ClickRates, click_mse, fit_naive, simulate_rates
from twotowers.identifiability.contexts import Places, assign_contexts, vector_ids
from twotowers.jobs.transfer import gains
from twotowers.rankers.svm import sample_queries, train_rank_svm
from twotowers.rankers.trees import fit_trees
from twotowers.root import ROOT
from twotowers.standins.rankings import generate

QUERIES = {"yahoo": 19_944, "istella_s": 19_245}
TEST_QUERIES = 2000
LOGS = read_yaml(ROOT / "papers/chen2024/experiment.yaml")["logs"]
DRAWN = Contexts(**LOGS["contexts-yahoo"]["contexts"])
CONTEXTS = DRAWN.types
ROWS = {
    "nodes": "nodes",
    "edges": "edges",
    "components": "components",
    "top1": "largest component",
    "top2": "second",
    "top3": "third",
}
# Click MSE of no debias and of DLA in Table 6, where both starts of DLA have the same.
PUBLISHED_MSE = {"yahoo": (3.7e-4, 1.7e-5), "istella_s": (4.4e-5, 1.1e-6)}
CLICKS, STEPS = 1_000_000, 100
# Test nDCG@5 and @10 of node merging in Table 2.
PUBLISHED_NDCG = {"yahoo": (0.697, 0.745), "istella_s": (0.636, 0.684)}
# Trees of the published size, a fifth as many; and small ones.
CHEAP, FULL = {"trees": 100, "leaves": 31}, {"trees": 100, "leaves": 255}
CONTEXT_COUNTS = (1, 10, 20, 50, 100, 200, 500, 1000)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
DRAWS = 20


def tables() -> Tables:
    return {name: measure(name) for name in QUERIES}


def measure(name: str) -> str:
    """The measurements on one stand-in."""
    sizes = {"train": QUERIES[name], "test": TEST_QUERIES}
    raw = {split: generate(name, split, queries=n, seed=SEED) for split, n in sizes.items()}
    shares = np.bincount(raw["train"].label.astype(int)) / len(raw["train"].label)
    lengths = raw["train"].lengths
    ready = preprocess_ultra(raw, logarithm=name == "istella_s")
    weights = train_rank_svm(sample_queries(ready["train"], 0.01, seed=SEED))
    test = ready["test"]
    lists = rank(ready["train"], ready["train"].features @ weights, top=POSITIONS)
    feature, queries = vector_ids(lists.features), lists.lengths
    vectors, places, _ = contexts_of(DRAWN, queries, POSITIONS)
    padded, bare = graph(*places.padded(feature)), graph(feature, places.shown)
    shown, position = np.bincount(feature), places.shown % POSITIONS
    pairs = np.unique(feature * POSITIONS + position) // POSITIONS
    rng = np.random.default_rng(SEED)
    attractive = Contextual().attractive(lists.label.astype(float))
    scores = {
        "true relevance, 100 trees of 255 leaves": FULL,
        "true relevance, 100 trees of 31 leaves": CHEAP,
        "ranking SVM": test.features @ weights,
        "random order": rng.random(len(test.label)),
    }
    worth = [("published, node merging", *PUBLISHED_NDCG[name])]
    for words, each in scores.items():
        if isinstance(each, dict):
            each = fit_trees(lists.features, attractive, **each)(test.features)
        worth.append((words, *(f"{gain:.3f}" for gain in gains(each, test).values())))
    errors = zip(
        ("no debias", "DLA from 1"),
        PUBLISHED_MSE[name],
        click_errors(lists, feature, places, vectors),
        strict=True,
    )

    def counted(found: dict, key: str) -> str:
        return f"{found[key]:,}"

    percent = [f"{share:.0%}" for share in SHARES]
    parts = [
        f"{QUERIES[name]:,} training queries drawn, {len(ready['train'].queries):,} after "
        f"preprocessing, {len(feature):,} displays and {len(places.empty):,} empty places. "
        f"List lengths: mean {lengths.mean():.1f}, median {np.median(lengths):.0f}, 90th "
        f"percentile {np.percentile(lengths, 90):.0f}. Shares of labels 0 to 4: "
        + ", ".join(f"{share:.3f}" for share in shares)
        + f". {np.count_nonzero(shown > 1):,} vectors are displayed again, "
        f"{np.count_nonzero(np.bincount(pairs) > 1):,} at another position.",
        markdown(
            [f"{CONTEXTS:,} contexts", "published", "with empty places", "without"],
            [
                (row, *(counted(found, key) for found in (GRAPH[name], padded, bare)))
                for key, row in ROWS.items()
            ],
            "---:",
        ),
        markdown(
            ["click MSE", "published", "here"],
            [(row, f"{printed:.1e}", f"{found:.1e}") for row, printed, found in errors],
            "---:",
        ),
        markdown(["test nDCG", "@5", "@10"], worth, "---:"),
        "Components by number of contexts, empty places counted as the published code does:",
        markdown(
            ["contexts", *(f"{n:,}" for n in CONTEXT_COUNTS)],
            [["components", *(f"{n:,}" for n in by_contexts(feature, queries))]],
            "---:",
        ),
        f"Share of {DRAWS} random subsets of the queries in which positions alone are connected:",
        markdown(
            ["queries", *percent],
            [
                ["with empty places", *by_share(feature, queries, padding=True)],
                ["without", *by_share(feature, queries, padding=False)],
            ],
            "---:",
        ),
    ]
    return "\n\n".join(parts)


def click_errors(
    lists: Rankings, feature: np.ndarray, places: Places, vectors: np.ndarray
) -> list[float]:
    """Click MSE of no debiasing and of DLA with examination from 1, as on log contexts-<name>."""
    seen, factor = np.unique(places.shown, return_inverse=True)
    chance = click_chance(Contextual(), lists.label, vectors, places.shown, POSITIONS)
    rate = simulate_rates(chance, CLICKS, np.random.default_rng(SEED))
    rates = ClickRates(
        feature=feature,
        factor=factor[None],
        rate=rate[None],
        weight=np.ones((1, len(feature)), np.float32),
        features=feature.max() + 1,
        factors=len(seen),
    )
    start = np.ones((1, len(seen)))
    fits = (fit_naive(rates), alternate(rates, start, LeastSquares(), steps=STEPS))
    return [click_mse(rates, fit)[0] for fit in fits]


def by_contexts(feature: np.ndarray, lengths: np.ndarray) -> list[int]:
    """Components for each of CONTEXT_COUNTS, empty places counted."""
    return [
        components(
            *assign_contexts(lengths, contexts, positions=POSITIONS, seed=SEED).padded(feature)
        )
        for contexts in CONTEXT_COUNTS
    ]


def by_share(feature: np.ndarray, lengths: np.ndarray, *, padding: bool) -> list[str]:
    """For each of SHARES, how often random queries connect the positions."""
    cells = []
    for share in SHARES:
        connected = 0
        for draw in range(DRAWS):
            kept = np.random.default_rng([SEED, draw]).random(len(lengths)) < share
            vectors = feature[np.repeat(kept, lengths)]
            places = assign_contexts(lengths[kept], 1, positions=POSITIONS, seed=SEED)
            rows = places.padded(vectors) if padding else (vectors, places.shown)
            connected += components(*rows) == 1
        cells.append(f"{connected / DRAWS:.2f}")
    return cells

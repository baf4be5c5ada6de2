"""The stand-ins of long lists: cut, ranked and learnt from as the thesis does it.

Its production ranker is trained ten times, and the same trees once on all labels.
"""

from __future__ import annotations

import numpy as np

from scripts.standins.targets import SEED, Tables, Target, mean_of, thousandths, told
from twotowers.claims.metrics import arp, ndcg
from twotowers.datasets.preprocess import preprocess_stratified
from twotowers.files.rankings import Rankings
from twotowers.rankers.trees import fit_lambdamart, some_queries
from twotowers.standins.rankings import generate

SIZES = {"yahoo_ltr": {"train": 4000, "test": 2000}, "istella_s_ltr": {"train": 1500, "test": 1000}}
LABELLED, DRAWS = 20, 10
# Hager (2026), Table 2.1: mean, median, 90th percentile and longest of the lists, and columns.
LISTS = {"yahoo_ltr": (24, 19, 49, 139), "istella_s_ltr": (103, 120, 147, 182)}
WIDTHS = {"yahoo_ltr": 699, "istella_s_ltr": 220}
# Hager (2026), Table 2.2, nDCG@10 and ARP: Production, and the best of the table (IPS).
PRODUCTION = {"yahoo_ltr": (0.671, 10.439), "istella_s_ltr": (0.632, 10.659)}
BEST = {"yahoo_ltr": (0.741, 9.658), "istella_s_ltr": (0.724, 8.274)}


def tables() -> Tables:
    return {place: each for name in SIZES for place, each in measure(name).items()}


def measure(name: str) -> Tables:
    """Calibrated numbers with bounds, and other numbers beside the printed ones."""
    raw = {split: generate(name, split, queries=n, seed=SEED) for split, n in SIZES[name].items()}
    lengths, (mean, median, p90, longest) = raw["train"].lengths, LISTS[name]
    options = {"most": p90, "log1p": name.startswith("istella"), "seed": SEED}
    train, test = (preprocess_stratified(raw[split], **options) for split in ("train", "test"))
    production = np.array([production_of(train, test, seed) for seed in range(DRAWS)])
    best = evaluated(test, fit_lambdamart(train, train.label)(test.features))
    rng = np.random.default_rng(SEED)
    chance = np.mean([evaluated(test, rng.random(len(test.label))) for _ in range(5)], axis=0)
    labels = np.bincount(raw["train"].label.astype(int), minlength=5) / len(raw["train"].label)
    printed, ideal = PRODUCTION[name], BEST[name]
    everything = f"nDCG@10, LambdaMART on all {SIZES[name]['train']:,} training queries"
    p90_found, per_query = np.percentile(lengths, 90), "documents per query, "
    rows = [
        Target("columns", train.features.shape[1], *[WIDTHS[name]] * 2, "the same", "d"),
        Target(per_query + "mean", lengths.mean(), mean - 2, mean + 2, str(mean), ".1f"),
        Target(per_query + "median", np.median(lengths), median - 3, median + 3, str(median),
               ".0f"),
        Target(per_query + "90th percentile", p90_found, p90 - 4, p90 + 4, str(p90), ".0f"),
        Target(per_query + "longest", lengths.max(), 0.9 * longest, longest, str(longest), ".0f"),
        Target("nDCG@10, LambdaMART on 20 queries", production[:, 0].mean(), printed[0] - 0.015,
               printed[0] + 0.015, f"{printed[0]}"),
        Target(everything, best[0], ideal[0] - 0.01, ideal[0] + 0.03, f"{ideal[0]} (IPS)"),
    ]  # fmt: skip
    seen = [
        ("nDCG@10, random order", chance[0], "not printed"),
        ("standard deviation of LambdaMART's on 20 queries", production[:, 0].std(ddof=1), ""),
        ("ARP, random order", chance[1], "not printed"),
        ("ARP, LambdaMART on 20 queries", production[:, 1].mean(), f"{printed[1]:.3f}"),
        ("ARP, LambdaMART on all training queries", best[1], f"{ideal[1]} (IPS)"),
        ("shares of labels 0 to 4", thousandths(labels), "not printed"),
    ]
    return {name: rows, f"{name}-further": told(seen, "published")}


def production_of(train: Rankings, test: Rankings, seed: int) -> tuple[float, float]:
    """Test nDCG@10 and ARP of the thesis' production ranker."""
    labelled = train.take(some_queries(train, LABELLED, seed=seed))
    return evaluated(test, fit_lambdamart(labelled, labelled.label)(test.features))


def evaluated(test: Rankings, scores: np.ndarray) -> tuple[float, float]:
    """Mean nDCG@10 and ARP; queries without relevant document count 0."""
    return mean_of(ndcg, scores, test), mean_of(arp, scores, test)

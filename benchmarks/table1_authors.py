"""Table 1 of Chen et al. (2024) on the authors' own lists: `python -m benchmarks.table1_authors`.

It makes ten runs at the published number of clicks. The project may not distribute the lists, so it
looks for the folders `chen2024_k2` and `chen2024_k2_node_intervention` in ../shared/data or in the
given folder. It prints a markdown table and takes some minutes, mostly for regression EM.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.authors_lists import read_lists
from papers.chen2024.methods.rate_dla import MeanRatio
from papers.chen2024.methods.rate_em import CollapsedEM
from papers.chen2024.methods.two_tower import fit_two_tower
from papers.chen2024.simulation import EXAMINATION
from papers.chen2024.studies.theorems import relevance_of
from twotowers.fitting.alternating import alternate
from twotowers.fitting.click_rates import ClickRates, click_mse, fit_naive, simulate_rates
from twotowers.identifiability.linked_lists import Lists
from twotowers.results.metrics import correlation, ndcg

RUNS = 10
CLICKS = 1_000_000
TOPS = (1, 3, 5, 10)
MERGED = (3, 4)
VARIANTS = {
    "plain": ("chen2024_k2", False),
    "merging": ("chen2024_k2", True),
    "intervention": ("chen2024_k2_node_intervention", False),
}


def sample(folder: Path, variant: str, runs: int) -> tuple[Lists, ClickRates]:
    """The lists of a variant, and their click rates in each run."""
    name, merge = VARIANTS[variant]
    lists = read_lists(folder / name)
    feature, position = lists.rows
    chance = np.tile(relevance_of(lists)[feature] * EXAMINATION[position], (runs, 1))
    rate = simulate_rates(chance, CLICKS, np.random.default_rng(0))
    factor = np.where(merge & (position == MERGED[1]), MERGED[0], position)
    return lists, ClickRates(
        feature=feature,
        factor=np.tile(factor, (runs, 1)),
        rate=rate,
        weight=np.ones_like(rate),
        features=len(lists.labels),
        factors=len(EXAMINATION),
    )


def scores(lists: Lists, relevance: np.ndarray) -> np.ndarray:
    """[runs, 5] MCC and nDCG@1/3/5/10 of [runs, documents] estimates."""
    where = np.ones(lists.documents.shape, bool)
    labels = lists.labels[lists.documents].astype(float)
    shown = [run[lists.documents] for run in relevance]
    gains = [[ndcg(each, labels, where=where, topn=top).mean() for each in shown] for top in TOPS]
    return np.column_stack([correlation(relevance_of(lists), relevance), *gains])


def measure(folder: Path, variant: str, methods: dict) -> None:
    """Print a row of the table per method."""
    lists, rates = sample(folder, variant, RUNS)
    for name, fit in methods.items():
        found = fit(rates)
        columns = scores(lists, found.relevance).T
        cells = [f"{values.mean():.3f} ± {values.std():.3f}" for values in columns]
        print(f"| {name} | {' | '.join(cells)} | {click_mse(rates, found).max():.1e} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--steps", type=int, default=20_000, help="of DLA and the two towers")
    parser.add_argument("--em-steps", type=int, default=100_000, help="of regression EM")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    uniform, normal = (draw((RUNS, len(EXAMINATION))) for draw in (rng.random, rng.standard_normal))
    print("| method | MCC | nDCG@1 | nDCG@3 | nDCG@5 | nDCG@10 | largest click MSE |")
    print("|---|---|---|---|---|---|---|")
    for variant in VARIANTS:
        methods = {
            f"DLA, {variant}": lambda rates: alternate(
                rates, uniform, MeanRatio(), steps=arguments.steps
            ),
            f"Regression-EM, {variant}": lambda rates: alternate(
                rates, uniform, CollapsedEM(), steps=arguments.em_steps
            ),
            f"Two-Tower, {variant}": lambda rates: fit_two_tower(
                rates, normal, steps=arguments.steps
            ),
        }
        if variant == "plain":
            methods = {"No debias": fit_naive} | methods
        measure(arguments.folder, variant, methods)


if __name__ == "__main__":
    main()

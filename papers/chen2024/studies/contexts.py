"""Node merging under contextual bias, on a semi-synthetic data set (Section 5.2, Tables 2 and 6).

The training queries' first ten documents, as the initial ranker sorts them, get a context type
each; clicks follow from label, context and position. Relevance is learnt per feature vector and
carried over to the test queries by boosted trees. One seed is one of the published runs: it
draws the clicks and random starts; contexts are drawn once.

It fits a log, and is a study still, because the road lacks three things that only it needs: users
who examine a place by its context type; relevance by feature vector, on pages that show the first
ten documents of longer lists; and test queries ranked by trees that were fitted to click rates
divided by examination.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.chen2024.contexts import (
    POSITIONS,
    Places,
    assign_contexts,
    bias_features,
    click_chance,
    context_vectors,
    relevance,
    vector_ids,
)
from papers.chen2024.displays import displayed
from papers.chen2024.rates import same_rows
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.fitting.alternating import LeastSquares, alternate
from twotowers.fitting.click_rates import click_mse, fit_naive, simulate_rates
from twotowers.identifiability.merging import node_merging
from twotowers.randomness import stream
from twotowers.rankers.trees import fit_trees
from twotowers.results.metrics import correlation, ndcg

TOPS = (5, 10)
EMPTY = "merging, empty places"
"""Name of the repair that counts empty places when it merges bias factors."""
STARTS = ("ones", "random")
FLOOR = 1e-5
"""What the published code adds to the examination by which it divides a click rate."""


def run(
    inputs,
    *,
    seed: int,
    name: str,
    contexts: int,
    clicks: int,
    steps: int,
    trees: int,
    leaves: int,
    data_seed: int,
) -> pd.DataFrame:
    """Measure no debiasing, and DLA plain and merged (in two ways) from both starts.

    Args:
        inputs: rankings of all splits, and the initial ranker's policy.
        seed: draws clicks and random starts.
        name: of the data set; becomes a column.
        contexts: number of context types.
        clicks: impressions per displayed document.
        steps: of DLA.
        trees, leaves: size of the boosted trees.
        data_seed: draws context vectors and who got which context.
    """
    lists = displayed(inputs.train, inputs.policy, "train", top=POSITIONS)
    test = read_rankings(inputs.test)
    feature = vector_ids(lists.features)
    vectors = context_vectors(contexts, seed=data_seed)
    places = assign_contexts(lists.lengths, contexts, seed=data_seed)
    seen, factor = np.unique(places.shown, return_inverse=True)
    truth = relevance(lists.label)
    chance = click_chance(lists.label, places, vectors)
    rate = simulate_rates(chance, clicks, stream("clicks", seed))
    described = bias_features(vectors)
    merges = {
        "plain": np.arange(len(seen)),
        "merging": node_merging(feature, factor, described[seen]).merged,
        EMPTY: _merged_with_empty(places, feature, described)[seen],
    }

    frames = []
    for repair, numbers in merges.items():
        rates = same_rows(
            feature, numbers[factor], rate,
            features=feature.max() + 1, factors=max(numbers) + 1, lanes=len(STARTS),
        )  # fmt: skip
        random = stream("start", seed, repair).random(rates.factors)
        starts = np.stack([np.ones(rates.factors), random])
        fits = {"dla": (alternate(rates, starts, LeastSquares(), steps=steps), STARTS)}
        if repair == "plain":
            fits["naive"] = (fit_naive(rates), ("none",))
        for method, (estimate, names) in fits.items():
            error = click_mse(rates, estimate)
            for lane, start in enumerate(names):
                observed = estimate.examination[lane][numbers[factor]]
                learnt = estimate.relevance[lane][feature]
                values = {"mcc": correlation(truth, learnt[None])[0], **gains(learnt, lists)}
                # Test measures are for Table 6, which does not have this repair.
                if repair != EMPTY:
                    predict = fit_trees(
                        lists.features, rate / (observed + FLOOR), trees=trees, leaves=leaves
                    )
                    found = gains(predict(test.features), test)
                    values |= {f"test_{metric}": value for metric, value in found.items()}
                values |= {
                    "click_mse": error[lane],
                    "merged_factors": len(np.unique(numbers)),
                    **{
                        f"{metric}_later_first": value
                        for metric, value in gains(learnt, lists, later_first=True).items()
                    },
                }
                frame = pd.DataFrame(values.items(), columns=["metric", "value"])
                frames.append(frame.assign(method=method, repair=repair, start=start))
    return pd.concat(frames, ignore_index=True).assign(position=None, dataset=name)


def _merged_with_empty(places: Places, feature: np.ndarray, described: np.ndarray) -> np.ndarray:
    """[factors] numbers after merging as the published code does, which takes empty places of
    short lists for displays of one vector: this joins their factors, and spares them a merge."""
    feature, shown = places.padded(feature)
    seen, factor = np.unique(shown, return_inverse=True)
    numbers = np.full(len(described), -1)
    numbers[seen] = node_merging(feature, factor, described[seen]).merged
    return numbers


def gains(scores: np.ndarray, lists: Rankings, *, later_first: bool = False) -> dict[str, float]:
    """Mean nDCG of the documents sorted by the scores.

    Args:
        scores: [rows].
        lists: the documents.
        later_first: of equal scores the later document ranks first, as in the published code.
    """
    length = lists.lengths.max()
    scores = pad(scores.astype(np.float32), lists.offsets, length)
    labels, where = pad(lists.label, lists.offsets, length), mask(lists.lengths, length)
    if later_first:
        scores, labels, where = (each[:, ::-1] for each in (scores, labels, where))
    return {f"ndcg@{top}": ndcg(scores, labels, where=where, topn=top).mean() for top in TOPS}

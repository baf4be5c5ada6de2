"""What the well-specified linear model still feels of the logging policy, and why.

The paper's linear relevance (Eq. 23) carries noise, and is clipped to its 5th and 95th percentile
(Section 7). A linear tower expresses neither, least of all the plateaus: the model called
well-specified is slightly misspecified, and Lemma 5.2 says that the policy amplifies that.
Expected clicks are fitted exactly, with and without clipping, with and without noise, and with
percentiles that count more or fewer empty places of short lists.
"""

from itertools import product

import numpy as np
import pandas as pd

from twotowers.files.rankings import read_rankings
from twotowers.fitting.newton import fit_linear
from twotowers.logs.policies import exposure, policy_scores
from twotowers.models import relevance
from twotowers.models.additive import Additive
from twotowers.randomness import stream

VARIANTS = {
    "as published": {},
    "without noise": {"noisy": False},
    "without clipping": {"clipped": False},
    "without either": {"clipped": False, "noisy": False},
    "padding masked": {"padding": 0.0},
    "2 % padding": {"padding": 0.02},
    "4 % padding": {"padding": 0.04},
}
"""How relevance is made, where not as published; `padding` is the share of all places that are
empty and count in the percentiles, where it is not the data set's own."""
SPREAD_AT = (5, 10)


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    positions: int,
    strengths: list[float],
    temperatures: list[float],
) -> pd.DataFrame:
    """Position bias per variant of linear relevance, strength and temperature; and the spread.

    A variant's spread at a position is its largest less its smallest bias over all policies, which
    sort training queries by the linear score itself. Its `padding` is the percentage of empty
    places. The seed draws the relevance function, its noise, and the policy's.
    """
    lists = read_rankings(inputs.train).first(queries)
    score = simulated(lists.features, seed=seed, clipped=False, noisy=False)
    padding = {name: paddings(lists.lengths, positions, **how) for name, how in VARIANTS.items()}
    truths = {
        name: simulated(lists.features, seed=seed, **how | {"padding": padding[name]})
        for name, how in VARIANTS.items()
    }
    frames = []
    for strength, temperature in product(strengths, temperatures):
        # Noise and ties are those of the seed at any strength.
        rng = stream("policy noise", seed, "train")
        scores = policy_scores(score, strength, rng=rng)
        shown = exposure(lists, scores, temperature, positions, rng=rng)
        for name, truth in truths.items():
            chance = Additive().chance(truth, positions)
            bias = fit_linear(lists.features, shown, shown * chance).bias
            own = pd.DataFrame({"position": np.arange(1, positions + 1), "value": bias - bias[0]})
            at = {"strength": float(strength), "temperature": float(temperature)}
            frames.append(own.assign(variant=name, **at))
    results = pd.concat(frames, ignore_index=True).assign(metric="position_bias")
    by_variant = results[results["position"].isin(SPREAD_AT)].groupby(["variant", "position"])
    spread = by_variant["value"].agg(np.ptp).reset_index().assign(metric="spread")
    results = pd.concat([results, spread], ignore_index=True).assign(weighting="none")
    percent = {
        name: round(100 * empty / (empty + len(score)), 1) for name, empty in padding.items()
    }
    return results.assign(padding=results["variant"].map(percent))


def paddings(lengths: np.ndarray, positions: int, *, padding: float | None = None, **how) -> int:
    """How many empty places count: the lists' own, or so many that they are a share of all."""
    if padding is None:
        return relevance.padding_of(lengths, positions)
    return round(padding / (1 - padding) * lengths.sum())


def simulated(
    features: np.ndarray, *, seed: int, clipped: bool = True, noisy: bool = True, padding: int = 0
) -> np.ndarray:
    """[documents] linear relevance; clipped and noisy, it is the published one of `train`."""
    empty = relevance.empty_scores("linear", features.shape[1], padding, seed, "train")
    scores = relevance.linear(features, np.random.default_rng(seed))
    if noisy:
        scores = relevance.noisy_scores("linear", features, "relevance noise", seed, "train")
    if clipped:
        return relevance.rescale(scores, empty)
    low, high = np.percentile(np.concatenate([scores, empty]), [5, 95])
    return relevance.HIGHEST * (scores - low) / (high - low)

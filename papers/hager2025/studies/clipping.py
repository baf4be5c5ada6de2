"""What the well-specified linear model still feels of the logging policy, and why.

The paper's linear relevance (Eq. 23) carries noise, and is clipped to its 5th and 95th percentile
(Section 7). A linear tower expresses neither, least of all the plateaus: the model called
well-specified is slightly misspecified, and Lemma 5.2 says that the policy amplifies that.
Expected clicks are fitted exactly, with and without clipping, with and without noise. It is a
study because no log is drawn, and its relevance exists nowhere else: exact fits of expected clicks
are theory checked by numbers. Takes about 15 seconds.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from papers.hager2025.population import click_chance, exposure, first_queries
from twotowers.files.rankings import Rankings
from twotowers.fitting.newton import fit_linear
from twotowers.logs.policies import policy_scores
from twotowers.models.relevance import HIGHEST, NOISE, linear, rescale
from twotowers.randomness import stream

VARIANTS = {
    "as published": {"clipped": True, "noisy": True},
    "without noise": {"clipped": True, "noisy": False},
    "without clipping": {"clipped": False, "noisy": True},
    "without either": {"clipped": False, "noisy": False},
}


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    positions: int,
    strengths: list[float],
    temperatures: list[float],
) -> pd.DataFrame:
    """Position bias per variant of linear relevance, strength and temperature.

    Args:
        inputs: files of rankings; those of `train` are used.
        seed: draws the relevance function, its noise, and the policy's.
        queries: how many queries of the training split.
        positions: positions on the page.
        strengths: of a policy that sorts by the linear score itself.
        temperatures: of that policy.
    """
    lists = first_queries(inputs.train, queries)
    score = simulated(lists.features, seed=seed, clipped=False, noisy=False)
    truths = {name: simulated(lists.features, seed=seed, **how) for name, how in VARIANTS.items()}
    frames = []
    for strength, temperature in product(strengths, temperatures):
        shown = policy(lists, score, strength, temperature, positions, seed)
        for name, truth in truths.items():
            bias = fit_linear(lists.features, shown, shown * click_chance(truth, positions)).bias
            frames.append(
                pd.DataFrame({"position": np.arange(1, positions + 1), "value": bias - bias[0]})
                .assign(method=name, strength=float(strength), temperature=float(temperature))
            )  # fmt: skip
    results = pd.concat(frames, ignore_index=True)
    return results.assign(metric="position_bias", weighting="none")


def simulated(features: np.ndarray, *, seed: int, clipped: bool, noisy: bool) -> np.ndarray:
    """[documents] linear relevance; clipped and noisy, it is the published one of `train`."""
    scores = linear(features, np.random.default_rng(seed))
    if noisy:
        scores = scores + stream("relevance noise", seed, "train").normal(0, NOISE, len(scores))
    if clipped:
        return rescale(scores)
    low, high = np.percentile(scores, [5, 95])
    return HIGHEST * (scores - low) / (high - low)


def policy(
    lists: Rankings,
    score: np.ndarray,
    strength: float,
    temperature: float,
    positions: int,
    seed: int,
) -> np.ndarray:
    """[documents, positions] exposure; noise and ties are those of the seed at any strength."""
    rng = stream("policy noise", seed, "train")
    return exposure(lists, policy_scores(score, strength, rng=rng), temperature, positions, rng=rng)

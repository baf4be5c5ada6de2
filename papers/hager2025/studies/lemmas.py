"""Lemmas 5.1 and 5.2 at the population optimum: what of the residuals vanishes.

Expected clicks (no sampling noise) of policies at strength 1 are fitted exactly: by a
well-specified model (one parameter per query-document pair on annotated relevance), by a
misspecified one (linear on non-linear relevance), and by a parameter per pair where examination and
attraction are multiplied (Lemma 5.2 is proved with such parameters). What the policy does to
estimates is set beside how its placement goes with the residuals that random rankings leave. A
residual is the true click probability minus the fitted one.
"""

import numpy as np
import pandas as pd

from twotowers.files.rankings import Rankings, read_rankings
from twotowers.fitting.newton import AdditiveOptimum, fit_embedding, fit_linear
from twotowers.logs.policies import exposure, policy_scores
from twotowers.models.additive import Additive
from twotowers.models.relevance import relevance

DIGITS = 8
MODELS = {"well-specified": "annotated", "misspecified": "deep", "not additive": "annotated"}
MOVED_AT = 10
"""The position whose estimate is compared between policies."""


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    positions: int,
    temperatures: list[float],
    strengths: list[float],
    mixed: float,
) -> pd.DataFrame:
    """Residuals and position bias per model and temperature; placement per model and strength.

    The seed draws the non-linear relevance, and the order of documents of equal relevance, on
    queries of the training split. Temperatures are above 0, where the model with a parameter per
    pair is identified; `strengths` are of the policies whose placement is set beside residuals, at
    the temperature `mixed`.
    """
    lists = read_rankings(inputs.train).first(queries)
    frames = []
    for model in MODELS:
        for temperature in temperatures:
            shown, chance = population(lists, model, temperature, positions, seed)
            left = residuals(shown, chance, fit(model, lists.features, shown, chance))
            frames.append(left.assign(model=model, temperature=temperature, strength=1.0))
        frames.append(placement(lists, model, strengths, mixed, positions, seed))
    return pd.concat(frames, ignore_index=True).assign(weighting="none")


def population(
    lists: Rankings,
    model: str,
    temperature: float,
    positions: int,
    seed: int,
    strength: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The policy and the true click probability, both [documents, positions]."""
    gamma = relevance(MODELS[model], lists.label, lists.features, seed=seed, split="train")
    rng = np.random.default_rng(seed)
    scores = gamma if strength == 1 else policy_scores(gamma, strength, rng=rng)
    shown = exposure(lists, scores, temperature, positions, rng=rng)
    if model == "not additive":
        return shown, multiplied_chance(gamma, positions)
    return shown, Additive().chance(gamma, positions)


def multiplied_chance(gamma: np.ndarray, positions: int) -> np.ndarray:
    """[documents, positions] 1/k times the additive model's probability at the first position."""
    return Additive().chance(gamma, 1) / np.arange(1, positions + 1)


def placement(
    lists: Rankings, model: str, strengths: list[float], mixed: float, positions: int, seed: int
) -> pd.DataFrame:
    """What a policy moves, beside how its placement goes with residuals, per strength.

    `residual_placement` is the correlation, over documents, of the mean residual that uniformly
    random rankings leave with the policy's mean rank, sign turned: positive where documents that
    are clicked more than fitted are placed above. `placed_residual` is the mean of the residuals
    that random rankings leave, over what the policy places at a position, less that at the first:
    what the gradient of Eq. 18 sees first when the policy is exchanged. `moved` is the estimate at
    the position less that from random rankings.
    """
    shown, chance = population(lists, model, 1.0, positions, seed)
    random = fit(model, lists.features, shown, chance)
    residual = np.where(shown > 0, chance - random.probability, 0.0)
    left = (shown * residual).sum(1) / shown.sum(1)
    at = min(MOVED_AT, positions) - 1
    rows = []
    for strength in strengths:
        shown, chance = population(lists, model, mixed, positions, seed, strength)
        fitted = fit(model, lists.features, shown, chance)
        rank = shown @ np.arange(1, positions + 1) / shown.sum(1)
        # A model that leaves no residual has none that could correlate.
        vanished = np.abs(left).max() < 10.0**-DIGITS
        correlation = 0.0 if vanished else -np.corrcoef(left, rank)[0, 1]
        placed = (shown * residual).sum(0) / shown.sum(0)
        moved = (fitted.bias - fitted.bias[0])[at] - (random.bias - random.bias[0])[at]
        rows += [
            (strength, "residual_placement", correlation),
            (strength, "placed_residual", round(placed[at] - placed[0], DIGITS)),
            (strength, "moved", round(moved, DIGITS)),
        ]
    frame = pd.DataFrame(rows, columns=["strength", "metric", "value"])
    return frame.assign(model=model, temperature=mixed)


def fit(
    model: str, features: np.ndarray, exposure: np.ndarray, chance: np.ndarray
) -> AdditiveOptimum:
    """The optimum of a model on expected clicks."""
    if model == "misspecified":
        return fit_linear(features, exposure, exposure * chance)
    return fit_embedding(exposure, exposure * chance)


def residuals(exposure: np.ndarray, chance: np.ndarray, fitted: AdditiveOptimum) -> pd.DataFrame:
    """Sizes of residuals, as click probabilities, and the fitted position bias.

    Over the cells that the policy shows: the largest residual (Eq. 19), the mean size under the
    policy, and (Eq. 21) the largest of the policy's means over the documents of a position, and the
    mean size and the largest of its means over the positions of a document.
    """
    residual = np.where(exposure > 0, chance - fitted.probability, 0.0)
    weighted = exposure * residual
    shown = exposure.sum(0)
    values = {
        "largest_cell": np.abs(residual).max(),
        "mean_cell": np.abs(weighted).sum() / exposure.sum(),
        "largest_position_mean": np.abs(weighted.sum(0) / shown).max(),
        "mean_document_mean": np.abs(weighted.sum(1) / exposure.sum(1)).mean(),
        "largest_document_mean": np.abs(weighted.sum(1) / exposure.sum(1)).max(),
    }
    # Newton's method stops somewhere below this precision; further digits mean nothing.
    rows = [(metric, None, round(value, DIGITS)) for metric, value in values.items()]
    bias = fitted.bias - fitted.bias[0]
    rows += [("position_bias", rank, value) for rank, value in enumerate(bias, start=1)]
    return pd.DataFrame(rows, columns=["metric", "position", "value"])

"""Lemmas 5.1 and 5.2 at the population optimum: what of the residuals vanishes.

Expected clicks (no sampling noise) of policies at strength 1 are fitted exactly, once by a
well-specified model (one parameter per query-document pair on annotated relevance) and once by a
misspecified one (linear on non-linear relevance). A residual is the true click probability minus
the fitted one. It is a study because no log is drawn: exact fits of expected clicks, cell by cell,
are theory checked by numbers. Takes seconds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.hager2025.population import click_chance, exposure, first_queries
from twotowers.files.rankings import Rankings
from twotowers.fitting.newton import AdditiveOptimum, fit_embedding, fit_linear
from twotowers.models.relevance import relevance

DIGITS = 8
MODELS = {"well-specified": "annotated", "misspecified": "deep"}


def run(
    inputs, *, seed: int, queries: int, positions: int, temperatures: list[float]
) -> pd.DataFrame:
    """Residuals and position bias per model and temperature.

    Args:
        inputs: files of rankings; those of `train` are used.
        seed: draws the non-linear relevance, and the order of documents of equal relevance.
        queries: how many queries of the training split.
        positions: positions on the page.
        temperatures: above 0, where the model with a parameter per pair is identified.
    """
    lists = first_queries(inputs.train, queries)
    frames = []
    for model, truth in MODELS.items():
        for temperature in temperatures:
            shown, chance = population(lists, truth, temperature, positions, seed)
            fitted = fit(model, lists.features, shown, chance)
            frames.append(
                residuals(shown, chance, fitted).assign(method=model, temperature=temperature)
            )
    return pd.concat(frames, ignore_index=True).assign(strength=1.0, weighting="none")


def population(
    lists: Rankings, truth: str, temperature: float, positions: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The policy at full strength and the true click probability, both [documents, positions]."""
    gamma = relevance(truth, lists.label, lists.features, seed=seed, split="train")
    shown = exposure(lists, gamma, temperature, positions, rng=np.random.default_rng(seed))
    return shown, click_chance(gamma, positions)


def fit(
    model: str, features: np.ndarray, exposure: np.ndarray, chance: np.ndarray
) -> AdditiveOptimum:
    """The optimum of the expected negative log-likelihood (Eq. 16)."""
    clicks = exposure * chance
    if model == "well-specified":
        return fit_embedding(exposure, clicks)
    return fit_linear(features, exposure, clicks)


def residuals(exposure: np.ndarray, chance: np.ndarray, fitted: AdditiveOptimum) -> pd.DataFrame:
    """Sizes of residuals, as click probabilities, and the fitted position bias.

    Over the cells that the policy shows: the largest residual (Eq. 19), the mean size under the
    policy, and the largest of the policy's means over the documents of a position (Eq. 21).
    """
    residual = np.where(exposure > 0, chance - fitted.probability, 0.0)
    weighted = exposure * residual
    shown = exposure.sum(0)
    values = {
        "largest_cell": np.abs(residual).max(),
        "mean_cell": np.abs(weighted).sum() / exposure.sum(),
        "largest_position_mean": np.abs(weighted.sum(0) / shown).max(),
    }
    # Newton's method stops somewhere below this precision; further digits mean nothing.
    rows = [(metric, None, round(value, DIGITS)) for metric, value in values.items()]
    bias = fitted.bias - fitted.bias[0]
    rows += [("position_bias", rank, value) for rank, value in enumerate(bias, start=1)]
    return pd.DataFrame(rows, columns=["metric", "position", "value"])

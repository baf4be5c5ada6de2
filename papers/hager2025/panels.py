"""What the items of this paper share: which rows they take, and panels in the paper's order."""

from __future__ import annotations

import pandas as pd

from twotowers.statistics import compare

LANE = ["setting", "strength", "temperature", "weighting"]

FIT = {
    "fit-linear": "linear tower\non linear relevance",
    "fit-deep": "deep tower\non non-linear relevance",
    "fit-embedding": "one parameter per\nquery-document pair",
}
MISFIT = {
    "misfit-linear": "linear tower\non non-linear relevance",
    "misfit-omitted": "omitted features",
    "misfit-expert": "expert policy",
}
"""From the settings of a figure to the titles of its panels, left to right."""


def bias_table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    settings: dict[str, str],
    *,
    strength: int,
    weighting: str = "none",
) -> pd.DataFrame:
    """Position bias of some settings at one strength: one row per position and temperature."""
    return compare(
        results,
        published,
        [*LANE, "metric", "position"],
        metric="position_bias",
        setting=list(settings),
        strength=strength,
        weighting=weighting,
    )


def ndcg_table(results: pd.DataFrame, published: pd.DataFrame, settings: list[str]) -> pd.DataFrame:
    """nDCG@10 of some settings, unweighted: one row per strength and temperature."""
    return compare(
        results,
        published,
        [*LANE, "metric"],
        metric="ndcg@10",
        setting=settings,
        weighting="none",
    )

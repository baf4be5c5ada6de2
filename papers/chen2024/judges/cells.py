"""What several judges share: the cells of a study that a claim is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from twotowers.claims.claims import NotTestable, seed_means
from twotowers.claims.data_provenance import REAL
from twotowers.claims.statistics import select

DATASETS = {"Yahoo!": {"dataset": "yahoo"}, "Istella-S": {"dataset": "istella_s"}}
CLICKS = 1_000_000
LISTS = ("k1", "k2", "k3", "k4", "k2-naive", "k2-em", "k2-towers")
"""The settings on fully synthetic lists; where their steps end is another."""
METHODS = ("rate_dla", "rate_em", "two_tower")
# What prints as 1.000.
PERFECT = 0.9995
# Runs from which a standard deviation may be taken.
LEAST_SEEDS = 3


def by_seed(results: pd.DataFrame, over: Mapping[str, Sequence | None], **where) -> pd.DataFrame:
    """[cells, seeds] values, on a full grid of cells."""
    cells = seed_means(results, over, **where).index
    wanted = {name: list(values) for name, values in over.items() if values is not None}
    rows = select(results, **where, **wanted)
    rows = rows.set_index([*over, "seed"])["value"].unstack("seed")
    if rows.shape[1] < LEAST_SEEDS:
        raise NotTestable(f"too few seeds for a spread: {rows.shape[1]}, at least {LEAST_SEEDS}")
    return rows.loc[cells]


def dla_means(
    results: pd.DataFrame,
    setting: str | Sequence[str],
    metric: str,
    over: Mapping[str, Sequence | None],
    **where,
) -> pd.Series:
    """Means over seeds in every cell, of DLA without repair unless `where` says otherwise.

    `over` has from lanes the wanted values, the index; None takes all there are.
    """
    chosen = {"method": "rate_dla", "repair": "plain", "setting": setting, **where}
    fixed = {name: value for name, value in chosen.items() if name not in over}
    return seed_means(results, over, metric=metric, **fixed)


def on_real_data(results: pd.DataFrame, setting: str) -> bool:
    """Whether a study read files that are known by their checksums."""
    return bool((select(results, setting=setting)["stands_on"] == REAL).all())


def check_clicks(by_clicks: pd.DataFrame) -> None:
    """Whether a table whose columns are numbers of clicks has the most and others."""
    if CLICKS not in by_clicks or len(by_clicks.columns) < 2:
        measured = ", ".join(f"{clicks:,}" for clicks in by_clicks)
        raise NotTestable(f"no results at {CLICKS:,} and at fewer clicks, but at {measured}")

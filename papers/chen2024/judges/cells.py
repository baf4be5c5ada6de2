"""What several judges share: the cells that a claim is about, printed numbers, and names."""

from collections.abc import Mapping, Sequence
from functools import cache

import pandas as pd

from twotowers.claims.claims import NotTestable, seed_means
from twotowers.claims.data_provenance import REAL
from twotowers.claims.published import bands
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


def metric_name(name: str) -> str:
    """A metric of the studies as the paper writes it: test_ndcg@5 is test nDCG@5."""
    return name.replace("mcc", "MCC").replace("test_", "test ").replace("ndcg", "nDCG")


MEASURED = [f"{split}ndcg@{at}" for split in ("", "test_") for at in (1, 3, 5, 10)]
NAMES = {
    "components": "K =",
    "views": "clicks",
    "bias_factors": "|T| =",
    "feature_vectors": "|X| =",
    "rows": "|D| =",
    "method": {"rate_dla": "DLA", "rate_em": "Regression-EM", "two_tower": "Two-Tower"},
    "metric": {name: metric_name(name) for name in ("mcc", *MEASURED)},
}
"""What metrics and lanes are called in the texts of claims."""


@cache
def tables() -> pd.DataFrame:
    """The printed tables."""
    return bands("chen2024")


def printed(over: Mapping[str, Sequence], **where) -> pd.Series:
    """The printed numbers of a selection, by the values of a lane."""
    ((lane, values),) = over.items()
    return select(tables(), **over, **where).set_index(lane)["value"][list(values)]


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
    results: pd.DataFrame, metric: str, over: Mapping[str, Sequence | None], **where
) -> pd.Series:
    """Means over seeds in every cell, of DLA without repair unless `where` says otherwise.

    `over` has from lanes the wanted values, the index; None takes all there are.
    """
    chosen = {"method": "rate_dla", "repair": "plain", "setting": LISTS, **where}
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

"""A click log with features as two towers read it: pages, or counts of rows of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import xlogy

from twotowers.experiment.log import Columns, Recorded
from twotowers.experiment.observed import splits_of
from twotowers.fits.features import KEYS, Standardised
from twotowers.jobs.gates import totals
from twotowers.jobs.measures import perplexities
from twotowers.logs.click_log import ClickLog
from twotowers.logs.counts import Counts
from twotowers.logs.described import Gathered
from twotowers.logs.observed import divided
from twotowers.logs.observed_pages import observed_pages
from twotowers.methods.task import Fitted, Split
from twotowers.randomness import stream

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""How a log is divided: to train on, to stop early by, and to report held-out losses of."""

UNCOUNTED = Counts(np.zeros(0), np.zeros(0))
"""In the place of the counts of pages that are only predicted."""


class DividedLog(Recorded):
    """A log whose splits are made already."""

    SIMULATED = False

    parts: Any = None

    @property
    def has_features(self) -> bool:
        return True

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Any], *, seed: int, features: Columns
    ) -> dict[str, Split]:
        return self.parts


@dataclass(frozen=True)
class Divided:
    """A log's splits, its features, and the query and document of its pairs."""

    splits: dict[str, Split]
    features: Standardised | None
    pairs: pd.DataFrame


def page_splits(log: ClickLog, table: pd.DataFrame | None, positions: int) -> Divided:
    """Pages, with the features of their documents; None is a parameter per pair."""
    pages = observed_pages(log, SHARES, positions=positions, seed=0)
    pairs = pages.ids.to_pandas()
    if table is None:
        return Divided(splits_of(pages, pages.pair), None, pairs)
    features = Standardised.fit(table, pairs, log.layout.columns)
    return Divided(splits_of(pages, Gathered(features.values(pairs), pages.pair)), features, pairs)


def cell_splits(log: ClickLog, table: pd.DataFrame | None, positions: int) -> Divided:
    """Impressions and clicks of each row of features, or each pair, at each position."""
    counts = log.count()
    pair, first = counts.groups(KEYS)
    ids = counts.where(first)
    pairs = pd.DataFrame({name: ids.values(name).to_pandas() for name in KEYS})
    features = None if table is None else Standardised.fit(table, pairs, log.layout.columns)
    row = np.arange(len(pairs))
    if features is not None:
        used, row = np.unique(features.rows(pairs), return_inverse=True)
        inputs = features.scaled(used)[:, None]
    else:
        inputs = row[:, None]
    cell = row[pair] * positions + counts.values("position").to_numpy() - 1
    size = len(inputs) * positions
    shown, clicked = (
        np.bincount(cell, each, size).astype(np.int64)
        for each in (counts.impressions, counts.clicks)
    )
    parts = divided(shown, clicked, SHARES, rng=stream("division of a log", 0))
    splits = {}
    for name, part in parts.items():
        columns = [inputs, *(each.reshape(-1, 1, positions) for each in part)]
        if name == "train":
            columns = _divided_evenly(*columns)
        own, *counted = columns
        where = np.ones(own.shape[:2], bool)
        splits[name] = Split(own, where, None, Counts(*(each[None] for each in counted)))
    return Divided(splits, features, pairs)


def _divided_evenly(inputs: np.ndarray, shown: np.ndarray, clicked: np.ndarray) -> list[np.ndarray]:
    """The same units. A unit with many impressions is split into several with equal parts of them.

    None has more impressions than the mean unit then, and there are at most twice as many. A step
    draws units alike, so one of most of the log's impressions would make its gradient noise.
    """
    total = shown.sum((1, 2))
    parts = np.maximum(np.ceil(total / max(total.mean(), 1)), 1).astype(int)
    share = np.repeat(parts, parts)[:, None, None]
    inputs, shown, clicked = (np.repeat(each, parts, axis=0) for each in (inputs, shown, clicked))
    return [inputs, (shown / share).astype(np.float32), (clicked / share).astype(np.float32)]


def measures_of_cells(found: Fitted, split: Split) -> dict[str, float]:
    """What `Fit.evaluate` returns, from the losses of counts."""
    assert found.cell_losses is not None  # The likelihood of counts.
    losses = found.cell_losses(split)
    measured = {name: value for name, at, value in perplexities(losses, split.counts, 0) if not at}
    one = measured["mean_perplexity"]
    likelihood = -float(losses.sum() / split.counts.impressions.sum())
    return {"perplexity": one, "conditional": one, "log_likelihood": likelihood}


def likelihood_of_rates(train: Split, test: Split, name: str) -> float:
    """Log-likelihood of held-out clicks by click rates of training, a mean over documents shown.

    Args:
        train, test: the splits.
        name: "constant", one rate for all, or "ranks", one per position.
    """
    shown, clicked = totals(train, 0, name)
    rate = (clicked + clicked.sum() / shown.sum()) / (shown + 1)
    shown, clicked = totals(test, 0, name, size=len(rate))
    return float((xlogy(clicked, rate) + xlogy(shown - clicked, 1 - rate)).sum() / shown.sum())

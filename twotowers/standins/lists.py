"""Stand-ins for Yahoo! C14B set 1 and Istella-S with real numbers of documents and columns.

They are for simulated clicks on whole lists, ranked by features (Hager 2026, chapter 2; Zhang et
al. 2023). The number of columns and the lengths of lists are those of the real sets. Two printed
nDCG@10 calibrate how much of relevance the columns carry, and how many labels it takes to learn it
(docs/standins.md). No vector recurs; stand-ins with recurring vectors are in
`standins.vectors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from twotowers.files.yamls import read_yaml
from twotowers.standins.vectors import signal_of_traits

BLOCK = 32
TRAITS = 6
LEVELS = 64
"""Distinct values of a column, about as many as the three digits of the real files allow."""
DECADES = 6
"""Columns of counts reach 10 to the power of 1, 2, ..., up to this."""


@dataclass(frozen=True)
class Population:
    """The parameters of a data set.

    Attributes:
        width: columns.
        lengths: shares of the queries, and quantiles of list lengths. Lengths are uniform between
            two quantiles.
        counts: whether columns are counts with a heavy tail, or lie in [0, 1].
        loadings: how strongly column j shows trait j % TRAITS, by j // TRAITS; the other columns
            show none. The higher, the fewer documents it takes to learn the trait.
        likeness: share of a trait's variance that is the query's own.
        predictable: share of the variance of utility that columns carry.
        query_sd: standard deviation of a query's own offset to the utility.
        thresholds: utilities from which a document has label 1, 2, 3, 4.
    """

    width: int
    lengths: list[tuple[float, int]]
    counts: bool
    loadings: tuple[float, ...]
    likeness: float
    predictable: float
    query_sd: float
    thresholds: tuple[float, float, float, float]


POPULATIONS = {
    name: Population(**law) for name, law in read_yaml(Path(__file__).with_suffix(".yaml")).items()
}


def lists(rng: np.random.Generator, block: int, *, population: Population) -> tuple[np.ndarray]:
    """[BLOCK] list lengths."""
    shares, longest = np.array(population.lengths).T
    return (np.interp(rng.random(BLOCK), shares, longest).round().astype(np.int64),)


def documents(
    rng: np.random.Generator, lengths: np.ndarray, *, population: Population
) -> tuple[np.ndarray, np.ndarray]:
    """One block: features [rows, width] and labels [rows]."""
    p = population
    rows = int(lengths.sum())
    query = np.repeat(np.arange(BLOCK), lengths)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    # Documents of one query resemble each other.
    traits = p.likeness**0.5 * normal(BLOCK, TRAITS)[query]
    traits += (1 - p.likeness) ** 0.5 * normal(rows, TRAITS)
    shown = normal(rows, p.width)
    informative = TRAITS * len(p.loadings)
    loading = np.repeat(np.float32(p.loadings), TRAITS)
    shown[:, :informative] *= np.sqrt(1 - loading**2)
    shown[:, :informative] += loading * np.tile(traits, len(p.loadings))
    levels = np.minimum(np.floor(ndtr(shown) * LEVELS), LEVELS - 1) / (LEVELS - 1)
    utility = p.predictable**0.5 * _signal(levels[:, :informative], np.float32(p.loadings))
    utility += (1 - p.predictable) ** 0.5 * normal(rows)
    utility += p.query_sd * normal(BLOCK)[query]
    label = np.searchsorted(p.thresholds, utility)
    if p.counts:
        levels = np.floor(10 ** (levels * (1 + np.arange(p.width) % DECADES))) - 1
    return levels, label


def _signal(levels: np.ndarray, loadings: np.ndarray) -> np.ndarray:
    """[rows]: the part of relevance that the columns carry; mean 0, variance 1, about."""
    weight = loadings / np.square(loadings).sum()
    trait = np.einsum("rlt,l->rt", (levels - 0.5).reshape(len(levels), -1, TRAITS), weight) * 3.2
    return (signal_of_traits(trait) - SIGNAL_MEAN) / SIGNAL_SD


SIGNAL_MEAN, SIGNAL_SD = -0.45, 1.28

"""Stand-ins for Yahoo! C14B set 1 and Istella-S with real numbers of documents and columns.

They are for simulated clicks on whole lists, ranked by features (Hager 2026, chapter 2; Zhang et
al. 2023). The number of columns and the lengths of lists are those of the real sets. How columns
resemble each other is measured on real sets of the same kind (docs/standins.md). Two printed
nDCG@10 calibrate how much of relevance the columns carry. No vector recurs; stand-ins with
recurring vectors are in `standins.vectors`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twotowers.files.yamls import read_yaml
from twotowers.standins.vectors import Columns, in_levels, signal_of_traits

BLOCK = 32
TRAITS = 12
SHARES = (1.0, 0.8)
"""A trait has this share of a column's variance, from the first column to the last."""
KINSHIP = 0.25
"""Correlation of two traits of a document."""
WEIGHTS = (1.0, 0.7, -0.7)
"""Of the first, second and third four traits in relevance."""
LEVELS = 64
"""Distinct values of a column, about as many as the three digits of the real files allow."""
DECADES = 6
"""Columns of counts reach 10 to the power of 1, 2, ..., up to this."""


@dataclass(frozen=True, kw_only=True)
class Population(Columns):
    """The parameters of a data set.

    Attributes:
        width: columns.
        lengths: shares of the queries, and quantiles of list lengths. Lengths are uniform between
            two quantiles.
    """

    width: int
    lengths: list[tuple[float, int]]


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

    # Documents of one query resemble each other, and so do the traits of one document.
    traits = p.likeness**0.5 * _akin(normal(BLOCK, TRAITS + 1))[query]
    traits += (1 - p.likeness) ** 0.5 * _akin(normal(rows, TRAITS + 1))
    column = np.arange(p.width)
    share = np.linspace(*SHARES, p.width, dtype=np.float32)
    shown = np.sqrt(1 - share) * normal(rows, p.width)
    shown += np.sqrt(share) * traits[:, column % TRAITS]
    levels = in_levels(shown, LEVELS)
    utility = p.predictable**0.5 * _signal(levels[:, :TRAITS])
    utility += (1 - p.predictable) ** 0.5 * normal(rows)
    utility += p.query_sd * normal(BLOCK)[query]
    label = np.searchsorted(p.thresholds, utility)
    if p.counts:
        levels = np.floor(10 ** (levels * (1 + column // TRAITS % DECADES))) - 1
    return levels, label


def _akin(values: np.ndarray) -> np.ndarray:
    """[rows, TRAITS + 1] -> [rows, TRAITS] that share the last value."""
    return KINSHIP**0.5 * values[:, -1:] + (1 - KINSHIP) ** 0.5 * values[:, :-1]


def _signal(levels: np.ndarray) -> np.ndarray:
    """[rows]: the part of relevance that the columns carry; mean 0, variance 1, about."""
    groups = np.split(3.2 * (levels - 0.5), TRAITS // 4, axis=1)
    parts = (weight * signal_of_traits(each) for weight, each in zip(WEIGHTS, groups, strict=True))
    return (sum(parts) - SIGNAL_MEAN) / SIGNAL_SD


SIGNAL_MEAN, SIGNAL_SD = -0.30, 1.78

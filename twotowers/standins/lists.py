"""Stand-ins for Yahoo! C14B set 1 and Istella-S with real numbers of documents and columns.

They are for simulated clicks on whole lists, ranked by features (Hager 2026, chapter 2; Zhang et
al. 2023). The number of columns and the lengths of lists are those of the real sets. Two printed
nDCG@10 calibrate how much of relevance the columns carry, and how many labels it takes to learn it
(docs/standins_lists.md). No vector recurs; stand-ins with recurring vectors are in
`standins.vectors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import ndtr

from twotowers.standins.vectors import in_one_table, signal_of_traits

# As in `standin`: a random stream per block, so the first n queries are always the same.
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
        lengths: quantiles of list lengths, by share of the queries. Lengths are uniform between
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
    lengths: Mapping[float, int]
    counts: bool
    loadings: tuple[float, ...]
    likeness: float
    predictable: float
    query_sd: float
    thresholds: tuple[float, float, float, float]


POPULATIONS = MappingProxyType(
    {
        "yahoo_ltr": Population(
            width=699,
            lengths={0: 1, 0.1: 7, 0.3: 12, 0.5: 19, 0.7: 26, 0.8: 33, 0.9: 48, 0.98: 72, 1: 139},
            counts=False,
            loadings=(0.97, 0.9, 0.7, 0.5, 0.4, 0.3, 0.3, 0.2, 0.2),
            likeness=0.36,
            predictable=0.34,
            query_sd=1.0,
            thresholds=(-0.93, 0.51, 1.96, 3.02),
        ),
        "istella_s_ltr": Population(
            width=220,
            lengths={0: 3, 0.1: 26, 0.2: 55, 0.35: 95, 0.5: 120, 0.75: 137, 0.9: 146, 1: 182},
            counts=True,
            loadings=(0.97, 0.9, 0.7, 0.5, 0.4, 0.3, 0.3, 0.2, 0.2),
            likeness=0.1,
            predictable=0.765,
            query_sd=0.2,
            thresholds=(1.31, 1.5, 1.7, 2.0),
        ),
    }
)
NAMES = tuple(POPULATIONS)


def draw(name: str, part: int, *, queries: int, seed: int) -> tuple[np.ndarray, ...]:
    """Draw one split.

    Args:
        name: 'yahoo_ltr' or 'istella_s_ltr'.
        part: the split's number; all splits come from one population.
        queries: number of queries; the first n are the same however many are asked for.
        seed: seed of the draw.

    Returns:
        [queries] list lengths, [rows] float32 labels 0 to 4, and [rows, width] float32 features:
        in [0, 1] for 'yahoo_ltr', counts of up to a million for 'istella_s_ltr'.
    """
    population = POPULATIONS[name]
    streams = [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*name.encode(), part, block)))
        for block in range(-(-queries // BLOCK))
    ]
    # Lengths are each stream's first draw, so the whole table can be allocated once.
    shares, longest = zip(*population.lengths.items(), strict=True)
    lengths = [
        np.interp(rng.random(BLOCK), shares, longest).round().astype(np.int64) for rng in streams
    ]
    blocks = (_documents(*each, population) for each in zip(streams, lengths, strict=True))
    return in_one_table(lengths, blocks, queries=queries, width=population.width)


def _documents(rng, lengths, population: Population) -> tuple[np.ndarray, np.ndarray]:
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

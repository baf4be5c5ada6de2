"""Stand-ins for Yahoo! C14B set 1 and Istella-S: data sets whose feature vectors recur.

Chen et al. (2024) ask whether relevance can be told from bias, and the answer hangs on how
often the very same feature vector is displayed under different bias factors. So what these
stand-ins take from the real sets is that: queries asked twice (the same documents under another
query id), documents listed twice in a query, short lists (whose empty positions the published
code fills with one zero vector), and a few vectors that head many lists. How often each
happens is inferred from the paper's Table 4; docs/standins_chen2024.md has the arithmetic
and what comes out. Columns take few values each, as real ones do, so that vectors also
coincide when most columns are dropped (Figure 7c, d).

They are narrower than the real sets, 50 columns instead of 700 and 220, and Istella-S's lists
are about a quarter of the real length: documents beyond the tenth rank are never displayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

WIDTH = 50
# As in `standin`: a random stream per block, so the first n queries are always the same.
BLOCK = 64
TRAITS = 5


@dataclass(frozen=True)
class Population:
    """What tells one data set from another.

    Attributes:
        repeated: chance that a query has the documents of an earlier one.
        listed_twice: chance that the next document in the list is a copy of this one, for the
            best and for the poorest document.
        heads: number of vectors that head many lists.
        headed: chance that a query's list holds a given one of them.
        short_every: every how many blocks one list is shorter than ten; 0 if list lengths are
            short often enough by themselves.
        length_shape, length_mean, shortest, longest: list lengths are gamma variates.
        counts: whether raw columns are counts with a heavy tail, or lie in [0, 1].
        likeness: share of a trait's variance that is the query's own.
        predictable: share of the variance of utility that columns carry.
        query_sd: standard deviation of a query's own offset to the utility.
        thresholds: utilities from which a document has label 1, 2, 3, 4.
    """

    repeated: float
    listed_twice: tuple[float, float]
    heads: int
    headed: float
    short_every: int
    length_shape: float
    length_mean: float
    shortest: int
    longest: int
    counts: bool
    likeness: float
    predictable: float
    query_sd: float
    thresholds: tuple[float, float, float, float]


POPULATIONS = {
    "yahoo": Population(
        repeated=0.041,
        listed_twice=(0.004, 0.05),
        heads=2,
        headed=0.0022,
        short_every=0,
        length_shape=1.85,
        length_mean=24,
        shortest=1,
        longest=139,
        counts=False,
        likeness=0.36,
        predictable=0.31,
        query_sd=1.15,
        thresholds=(-0.988, 0.456, 2.001, 3.181),
    ),
    "istella_s": Population(
        repeated=0.0045,
        listed_twice=(0.0004, 0.0004),
        heads=0,
        headed=0,
        short_every=10,
        length_shape=12,
        length_mean=26,
        shortest=10,
        longest=46,
        counts=True,
        likeness=0.1,
        predictable=0.43,
        query_sd=0.1,
        thresholds=(0.629, 0.836, 1.187, 1.683),
    ),
}
NAMES = tuple(POPULATIONS)

# Column j shows trait j % TRAITS, this strongly, in this many levels.
COLUMN = np.arange(WIDTH)
LOADING = np.array([0.9, 0.7, 0.5, 0.8, 0.3, 0.6, 0.0, 0.4, 0.8, 0.6], np.float32)[COLUMN // TRAITS]
LEVELS = np.array([3, 65, 9, 5, 17, 2, 33], np.float32)[COLUMN % 7]
# What a heavy-tailed column reaches: 10 to this power.
DECADES = 1 + COLUMN % 6
SHORTEST, DISPLAYED = 3, 10


def draw(name: str, part: int, *, queries: int, seed: int) -> tuple[np.ndarray, ...]:
    """Draw one split.

    Args:
        name: 'yahoo' or 'istella_s'.
        part: the split's number; all splits come from one population.
        queries: number of queries; the first n are the same however many are asked for.
        seed: seed of the draw.

    Returns:
        [queries] list lengths, [rows] float32 labels 0 to 4, and [rows, 50] float32 features:
        in [0, 1] for 'yahoo', counts of up to a million for 'istella_s'.
    """
    population = POPULATIONS[name]
    number = NAMES.index(name)
    streams = [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, part, block)))
        for block in range(-(-queries // BLOCK))
    ]
    # Which queries repeat others, and lengths, come first: the table can be allocated once.
    sources, lengths = zip(
        *(_lists(rng, block, population) for block, rng in enumerate(streams)), strict=True
    )
    kept = np.concatenate(lengths)[:queries]
    features = np.empty((kept.sum(), WIDTH), np.float32)
    label = np.empty(len(features), np.float32)
    start = 0
    for rng, source, block in zip(streams, sources, lengths, strict=True):
        levels, labels = _documents(rng, source, block, population)
        stop = min(start + len(labels), len(label))
        features[start:stop] = _raw(levels[: stop - start], population)
        label[start:stop] = labels[: stop - start]
        start = stop
    return kept, label, features


def _lists(rng: np.random.Generator, block: int, population: Population):
    """[BLOCK] the query of the block whose documents each query has, and [BLOCK] lengths."""
    p = population
    scale = p.length_mean / p.length_shape
    lengths = (rng.gamma(p.length_shape, scale, BLOCK) + 0.5).astype(np.int64)
    lengths = np.clip(lengths, p.shortest, p.longest)
    # Placed, not drawn, because so few of them are a large part of what Table 4 counts.
    if p.short_every and block % p.short_every == p.short_every // 2:
        lengths[0] = SHORTEST + block // p.short_every % (DISPLAYED - SHORTEST)
    source = np.arange(BLOCK)
    earlier = (rng.random(BLOCK) * source).astype(np.int64)
    for query in np.flatnonzero(rng.random(BLOCK) < p.repeated):
        source[query] = source[earlier[query]]
    return source, lengths[source]


def _documents(rng, source, lengths, population) -> tuple[np.ndarray, np.ndarray]:
    """One block: levels [rows, WIDTH] in [0, 1] and labels [rows]."""
    p = population
    rows = int(lengths.sum())
    query = np.repeat(np.arange(BLOCK), lengths)
    first = np.cumsum(lengths) - lengths

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    # Documents of one query resemble each other.
    traits = p.likeness**0.5 * normal(BLOCK, TRAITS)[query]
    traits += (1 - p.likeness) ** 0.5 * normal(rows, TRAITS)
    shown = LOADING * traits[:, COLUMN % TRAITS]
    shown += np.sqrt(1 - LOADING**2) * normal(rows, WIDTH)
    levels = np.minimum(np.floor(ndtr(shown) * LEVELS), LEVELS - 1) / (LEVELS - 1)
    chance = rng.random(BLOCK)
    for head in range(p.heads):
        lists = (chance >= head * p.headed) & (chance < (head + 1) * p.headed)
        levels[first[lists]] = _head(head)
    signal = _signal(levels)
    utility = p.predictable**0.5 * signal + (1 - p.predictable) ** 0.5 * normal(rows)
    utility += p.query_sd * normal(BLOCK)[query]
    label = np.searchsorted(p.thresholds, utility)
    label[first[chance < p.heads * p.headed]] = 4

    best, poorest = p.listed_twice
    copied = rng.random(rows) < best + (poorest - best) * ndtr(-1.5 * signal)
    twice = np.roll(copied, 1)
    twice[first] = False
    document = np.maximum.accumulate(np.where(twice, 0, np.arange(rows)))
    # A query asked again has the rows of the query that it repeats.
    place = np.arange(rows) - first[query]
    document = document[first[source[query]] + place]
    return levels[document], label[document]


def _head(number: int) -> np.ndarray:
    """[WIDTH]: the levels of a document that matches best in every trait that counts."""
    levels = np.where(np.isin(COLUMN % TRAITS, (0, 1, 2)), 1, 0.5)
    levels = np.round(levels * (LEVELS - 1)) / (LEVELS - 1)
    levels[number * TRAITS + TRAITS - 1] = 0
    return levels.astype(np.float32)


def _signal(levels: np.ndarray) -> np.ndarray:
    """[rows]: the part of relevance that the columns carry; mean 0, variance 1, about.

    Matches saturate, the second trait counts more for documents that match, and the fourth
    has an optimum: a linear ranker can express neither.
    """
    weight = LOADING / (LOADING**2).reshape(-1, TRAITS).sum(0)[COLUMN % TRAITS]
    trait = ((levels - 0.5) * weight).reshape(len(levels), -1, TRAITS).sum(1) * 3.2
    signal = (
        np.tanh(1.2 * trait[:, 0])
        + 0.5 * trait[:, 1]
        + 0.6 * trait[:, 1] * (trait[:, 0] > 0)
        + 0.5 * trait[:, 2]
        - 0.4 * trait[:, 3] ** 2
    )
    return (signal - SIGNAL_MEAN) / SIGNAL_SD


SIGNAL_MEAN, SIGNAL_SD = -0.434, 1.422


def _raw(levels: np.ndarray, population: Population) -> np.ndarray:
    """Columns as the real files have them: shares, or counts over several decades."""
    if not population.counts:
        return levels
    return np.floor(10 ** (levels * DECADES)) - 1

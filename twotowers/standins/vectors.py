"""Stand-ins for Yahoo! C14B set 1 and Istella-S: data sets whose feature vectors recur.

Chen et al. (2024) ask whether relevance can be separated from bias. The answer depends on how often
the same feature vector is displayed under different bias factors. So these stand-ins have what
makes vectors recur in the real sets: queries asked twice (the same documents under another query
id), documents listed twice in a query, documents of one query listed in another, short lists
(whose empty positions the published code fills with one zero vector), and a few vectors at the
head of many lists. A vector that is listed again may have another label there. The rates are
calibrated to the paper's Table 4 and to the click MSE of its Table 6. docs/standins.md
says what was inferred of them. Columns have few values each, as real ones do, so that vectors
also coincide when most columns are dropped (Figure 7c, d).

The stand-ins are narrower than the real sets: 50 columns instead of 700 and 220. The lists of
Istella-S have about a quarter of the real length, since documents beyond the tenth rank are never
displayed.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from twotowers.files.yamls import read_yaml

WIDTH = 50
BLOCK = 64
TRAITS = 5


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What columns and labels of a data set are drawn by.

    Attributes:
        counts: whether raw columns are counts with a heavy tail, or lie in [0, 1].
        likeness: share of a trait's variance that is the query's own.
        predictable: share of the variance of utility that columns carry.
        query_sd: standard deviation of a query's own offset to the utility.
        thresholds: utilities from which a document has label 1, 2, 3, 4.
    """

    counts: bool
    likeness: float
    predictable: float
    query_sd: float
    thresholds: tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Population(Columns):
    """The parameters of a data set.

    Attributes:
        repeated: chance that a query has the documents of an earlier one.
        listed_twice: chance that the next document in the list is a copy of this one, for the
            best and for the poorest document.
        linked: chance that a document is a copy of one of an earlier query: of one with label 4
            whose columns carry little; a quarter of that for each step of the label.
        linked_below: what columns carry of relevance at which that chance has halved. Documents
            at the top of a list carry more, and are hardly ever listed elsewhere.
        relabelled: chance that a vector that was listed before gets a label of its own.
        heads: number of vectors that head many lists.
        headed: chance that a query's list holds a given one of them.
        short_every: every how many blocks one list is shorter than ten; 0 if list lengths are
            short often enough by themselves.
        length_shape, length_mean, shortest, longest: list lengths are gamma variates.
    """

    repeated: float
    listed_twice: tuple[float, float]
    linked: float
    linked_below: float
    relabelled: float
    heads: int
    headed: float
    short_every: int
    length_shape: float
    length_mean: float
    shortest: int
    longest: int


POPULATIONS = {
    name: Population(**law) for name, law in read_yaml(Path(__file__).with_suffix(".yaml")).items()
}

# Column j shows trait j % TRAITS, this strongly, in this many levels.
COLUMN = np.arange(WIDTH)
LOADING = np.array([0.9, 0.7, 0.5, 0.8, 0.3, 0.6, 0.0, 0.4, 0.8, 0.6], np.float32)[COLUMN // TRAITS]
LEVELS = np.array([3, 65, 9, 5, 17, 2, 33], np.float32)[COLUMN % 7]
# A heavy-tailed column reaches 10 to this power.
DECADES = 1 + COLUMN % 6
SHORTEST, DISPLAYED = 3, 10
STEEP = 3


def lists(
    rng: np.random.Generator, block: int, *, population: Population
) -> tuple[np.ndarray, np.ndarray]:
    """[BLOCK] lengths, and [BLOCK] the query of the block whose documents each query has."""
    p = population
    scale = p.length_mean / p.length_shape
    lengths = (rng.gamma(p.length_shape, scale, BLOCK) + 0.5).astype(np.int64)
    lengths = np.clip(lengths, p.shortest, p.longest)
    # Short lists are placed, not drawn: a few of them are a large part of the counts of Table 4.
    if p.short_every and block % p.short_every == p.short_every // 2:
        lengths[0] = SHORTEST + block // p.short_every % (DISPLAYED - SHORTEST)
    source = np.arange(BLOCK)
    earlier = (rng.random(BLOCK) * source).astype(np.int64)
    for query in np.flatnonzero(rng.random(BLOCK) < p.repeated):
        source[query] = source[earlier[query]]
    return lengths[source], source


def documents(
    rng: np.random.Generator, lengths: np.ndarray, source: np.ndarray, *, population: Population
) -> tuple[np.ndarray, np.ndarray]:
    """One block: features [rows, WIDTH] and labels [rows]."""
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
    levels = in_levels(shown, LEVELS)
    chance = rng.random(BLOCK)
    for head in range(p.heads):
        lists = (chance >= head * p.headed) & (chance < (head + 1) * p.headed)
        levels[first[lists]] = _head(head)
    signal = _signal(levels)
    explained, offset = p.predictable**0.5 * signal, p.query_sd * normal(BLOCK)[query]
    noise = (1 - p.predictable) ** 0.5
    label = np.searchsorted(p.thresholds, explained + noise * normal(rows) + offset)
    heading = first[chance < p.heads * p.headed]
    label[heading] = 4

    best, poorest = p.listed_twice
    copied = rng.random(rows) < best + (poorest - best) * ndtr(-1.5 * signal)
    twice = np.roll(copied, 1)
    twice[first] = False
    document = np.maximum.accumulate(np.where(twice, 0, np.arange(rows)))
    # A repeated query has the rows of the earlier query.
    place = np.arange(rows) - first[query]
    document = document[first[source[query]] + place]
    # A document of an earlier query of the block; the first query has none before it.
    earlier = document[(rng.random(rows) * first[query]).astype(np.int64)]
    few = ndtr(STEEP * (p.linked_below - signal[earlier]))
    linked = rng.random(rows) < p.linked * label[earlier] / 4 * few
    document = np.where(linked & (first[query] > 0), earlier, document)

    label = label[document]
    again = rng.random(rows) < p.relabelled
    again[np.unique(document, return_index=True)[1]] = False
    again[np.isin(document, heading)] = False
    anew = np.searchsorted(p.thresholds, explained[document] + noise * normal(rows) + offset)
    label[again] = anew[again]
    values = levels[document]
    # As in the real files: shares, or counts over several decades.
    return np.floor(10 ** (values * DECADES)) - 1 if p.counts else values, label


def in_levels(values: np.ndarray, levels: np.ndarray | int) -> np.ndarray:
    """Normal values as so many equally likely levels from 0 to 1."""
    return np.minimum(np.floor(ndtr(values) * levels), levels - 1) / (levels - 1)


def _head(number: int) -> np.ndarray:
    """[WIDTH]: the levels of a document that matches best in every relevant trait."""
    levels = np.where(np.isin(COLUMN % TRAITS, (0, 1, 2)), 1, 0.5)
    levels = np.round(levels * (LEVELS - 1)) / (LEVELS - 1)
    levels[number * TRAITS + TRAITS - 1] = 0
    return levels.astype(np.float32)


def _signal(levels: np.ndarray) -> np.ndarray:
    """[rows]: the part of relevance that the columns carry; mean 0, variance 1, about."""
    weight = LOADING / (LOADING**2).reshape(-1, TRAITS).sum(0)[COLUMN % TRAITS]
    trait = ((levels - 0.5) * weight).reshape(len(levels), -1, TRAITS).sum(1) * 3.2
    return (signal_of_traits(trait) - SIGNAL_MEAN) / SIGNAL_SD


def signal_of_traits(trait: np.ndarray) -> np.ndarray:
    """[rows]: relevance from the first four traits of documents, [rows, traits].

    Matches saturate. The second trait counts more for documents that match. The fourth has an
    optimum. A linear ranker cannot express these.
    """
    return (
        np.tanh(1.2 * trait[:, 0])
        + 0.5 * trait[:, 1]
        + 0.6 * trait[:, 1] * (trait[:, 0] > 0)
        + 0.5 * trait[:, 2]
        - 0.4 * trait[:, 3] ** 2
    )


SIGNAL_MEAN, SIGNAL_SD = -0.434, 1.422

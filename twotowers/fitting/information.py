"""How sure fitted probabilities are: standard errors and intervals, by the observed information.

The score of a log-odds h of a probability p is what its expected trials say against it (Fisher's
identity; Eq. 5.10 of the thesis), given the clicks,

    s = successes - p trials,

which is what counting and EM know. The observed information is I = -ds/dh at the estimate, by
differences of exact scores, of all pages at once and place by place within a page. Where
nothing is hidden this is p (1 - p) trials, and the standard error of p is sqrt(p (1 - p) / trials).
A prior that smooths the estimate counts with what it imagines.

Documents of different queries share no page. So I consists of a block per set of documents that
were shown together, and of a border of what all pages share: positions, and what there is once.
The inverse needs the inverses of the blocks only (Schur's complement).

At 0 and 1 the likelihood has a slope instead of a maximum. There an interval is one-sided: without
a success in n trials it ends at 1 - .05^(1 / n), and the standard error is 1 / n, as if the
likelihood were a density of p.

    >>> import numpy as np
    >>> from twotowers.fitting.em import fit_counts
    >>> from twotowers.fitting.statistics import Statistics
    >>> from twotowers.models.document_rate import DocumentRate
    >>> cells = Statistics.of_cells(
    ...     DocumentRate(), np.array([0, 1]), np.array([0, 0]),
    ...     np.array([100, 30]), np.array([20, 0]), pairs=2, positions=1)
    >>> found = intervals(cells, fit_counts(cells).parameters)["attraction"]
    >>> found.error.round(3).tolist(), found.high.round(3).tolist()
    ([0.04, 0.033], [0.29, 0.095])
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from twotowers.errors import InputError
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.models.protocol import ONCE, PER_DOCUMENT, ClickModel

LOGGER = logging.getLogger(__name__)

LEVEL = 0.95
NORMAL = 1.959963984540054
"""Standard deviations of a two-sided interval of that level."""

EDGE = 0.01
"""An estimate that fewer successes, or fewer failures, stand behind is at 0, or at 1."""
INSIDE = 1e-6
"""How far from 0 and 1 the slope is taken there."""
STEP = 1e-5
"""Of the differences, in log-odds: they are exact to about as large a share."""
FLAT = 1e-4
"""The least information that counts, in trials: less says nothing of a probability."""
PAGES = 2_000
"""Distinct pages whose information is in memory at a time."""
ENTRIES = 4_000_000
"""Of the blocks that are inverted at a time, and of the information that is added up at a time."""
LARGEST = 5_000
"""The most probabilities of documents that are inverted together: a minute, and a gigabyte."""


@dataclass(frozen=True)
class Intervals:
    """What is known of the probabilities of a part.

    Attributes:
        error: [size] standard errors; NaN where the clicks do not tell, or where the probability
            was held.
        low, high: [size] ends of intervals of 95 %: of the log-odds, by the normal law; one-sided
            at 0 and 1; from 0 to 1 where the clicks do not tell.
        impressions: [size] how often what it belongs to was shown.
    """

    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    impressions: np.ndarray


def holds_scale(model: ClickModel) -> bool:
    """Whether clicks leave a scale open that attraction and examination share.

    Then errors are those of what is left when the examination of the first position is known.
    """
    return "examination" in model.parts and model.counts is None


def intervals(
    statistics: Statistics | Totals,
    parameters: Mapping[str, np.ndarray],
    *,
    prior: Prior | None = None,
) -> dict[str, Intervals]:
    """Standard errors and intervals of fitted probabilities.

    Args:
        statistics: the log that they were fitted to, of a model with `counts` or `expectations`.
        parameters: per part [size] probabilities, NaN where nothing is known. The maximum of the
            likelihood, or of likelihood and prior. Elsewhere the curvature is taken as it is.
        prior: what the fit imagined, if anything.

    Returns:
        what is known, by part.

    Raises:
        InputError: the model has neither.
    """
    model = statistics.model
    if model.counts is None and model.expectations is None:
        raise InputError(
            f"{type(model).__name__} has neither counts nor expectations",
            field="uncertainty",
            expected="a model that counting or EM fits",
        )
    kind = _Rates if isinstance(statistics, Totals) else _Point
    point = kind(statistics, parameters, prior or Prior())
    variance = point.variance()
    # Log-odds this uncertain say nothing of the probability.
    told = point.free & (variance < 1 / FLAT)
    spread = np.sqrt(np.where(told, variance, 0))
    odds = logit(np.clip(point.values, INSIDE, 1 - INSIDE))
    chance = expit(odds)
    error = np.where(told, chance * (1 - chance) * spread, np.nan)
    low = np.where(told, expit(odds - NORMAL * spread), 0.0)
    high = np.where(told, expit(odds + NORMAL * spread), 1.0)
    slope, at_zero, at_one = point.edges()
    reach = -np.expm1(np.log1p(-LEVEL) / np.where(slope > 0, slope, 1))
    edge = (at_zero | at_one) & (slope > 0)
    error = np.where(edge, np.minimum(1 / np.where(slope > 0, slope, 1), 1), error)
    high = np.where(edge & at_zero, reach, high)
    low = np.where(edge & at_one, 1 - reach, low)
    return {
        part: Intervals(error[at], low[at], high[at], point.impressions[at])
        for part, at in point.slices.items()
    }


class _Point:
    """An estimate as one vector, with the trials of each of its probabilities."""

    def __init__(self, statistics: Statistics | Totals, parameters: Mapping, prior: Prior):
        self.statistics, self.model = statistics, statistics.model
        ends = np.cumsum([0, *statistics.sizes.values()])
        self.slices = {
            part: slice(*ends[place : place + 2]) for place, part in enumerate(statistics.sizes)
        }
        self.size = int(ends[-1])
        self.values = np.concatenate([np.ravel(parameters[part]) for part in self.slices])
        self.of_documents = np.zeros(self.size, bool)
        imagined = np.zeros((2, self.size))
        for part, at in self.slices.items():
            self.of_documents[at] = self.model.parts[part] == PER_DOCUMENT
            imagined[:, at] = np.reshape(prior.of(part), (2, 1))
        self.imagined = imagined[1]
        known = ~np.isnan(self.values)
        self.chances = np.where(known, self.values, 0.5)
        successes, trials, self.impressions = self._totals(self.chances)
        self.tried = known & (trials + self.imagined > 0)
        if holds_scale(self.model):
            self.tried[self.slices["examination"].start] = False
        successes, trials = successes + imagined[0], trials + imagined[1]
        self.at_zero = self.tried & (successes < EDGE)
        self.at_one = self.tried & (trials - successes < EDGE) & ~self.at_zero
        self.free = self.tried & ~self.at_zero & ~self.at_one

    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How steeply the likelihood falls from 0 or 1, in nats; and where the estimate is 0, 1."""
        edge = self.at_zero | self.at_one
        inside = np.clip(self.chances, INSIDE, 1 - INSIDE)
        successes, trials, _ = self._totals(np.where(edge, inside, self.chances))
        slope = successes / inside - (trials - successes) / (1 - inside)
        return np.where(self.at_zero, -slope, slope) * edge, self.at_zero, self.at_one

    def variance(self) -> np.ndarray:
        """[size] of the log-odds; infinite where they are not free."""
        variance, free = np.full(self.size, np.inf), np.flatnonzero(self.free)
        variance[free] = _inverse_diagonal(self.information(), free, self.of_documents[free])
        return variance

    def information(self) -> csr_array:
        """[size, size] observed information of the log-odds; as if there were no other edges."""
        chances = np.clip(self.chances, INSIDE, 1 - INSIDE)
        every = np.arange(self.size)
        triples = [(every, every, chances * (1 - chances) * self.imagined)]
        total, entries = csr_array((self.size, self.size)), self.size
        for start in range(0, len(self.statistics.number), PAGES):
            # A matrix takes memory and time for each probability, so there must not be many.
            if entries > max(ENTRIES, self.size):
                total, triples, entries = total + _matrix(triples, self.size), [], 0
            new = self._of_rows(slice(start, start + PAGES), chances)
            triples, entries = triples + new, entries + sum(len(value) for *_, value in new)
        total = total + _matrix(triples, self.size)
        return (total + total.T) / 2

    def _of_rows(self, rows: slice, chances: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """The information of some distinct pages, as rows, columns and values to add up."""
        given = self.statistics
        index = {part: at.start + given.index[part][rows] for part, at in self.slices.items()}
        laid_out = {part: chances[own] for part, own in index.items()}
        where, number = given.where[rows], given.number[rows][:, None]
        triples, before = [], self._scores(laid_out, rows)
        for part, values in laid_out.items():
            # A probability that there is once is moved at all places at once.
            once = self.model.parts[part] == ONCE
            for place in [None] if once else range(values.shape[1]):
                at = slice(None) if once else slice(place, place + 1)
                moved = values.copy()
                moved[:, at] = expit(logit(moved[:, at]) + STEP)
                after = self._scores({**laid_out, part: moved}, rows)
                by = np.broadcast_to(index[part][:, at][:, :1], where.shape)
                # What is behind the end of a page has no score, and moves none.
                seen = where if once else where & where[:, at]
                for other, own in index.items():
                    slope = (before[other] - after[other]) / STEP * number
                    kept = seen & (slope != 0)
                    triples.append((own[kept], by[kept], slope[kept]))
        return triples

    def _scores(self, chances: Mapping, rows: slice) -> dict[str, np.ndarray]:
        """Per part [rows, K] what the clicks say against its log-odds."""
        credits = self._credits(chances, rows)
        return {
            part: successes - trials * chances[part]
            for part, (successes, trials) in credits.items()
        }

    def _credits(self, chances: Mapping, rows: slice) -> Mapping:
        clicks, where = self.statistics.clicks[rows], self.statistics.where[rows]
        if self.model.counts is not None:
            return self.model.counts(clicks, where)
        return self.model.expectations(chances, clicks, where)

    def _totals(self, vector: np.ndarray) -> np.ndarray:
        """[3, size] successes, trials and impressions."""
        given, totals = self.statistics, np.zeros((3, self.size))
        laid_out = {part: vector[at][given.index[part]] for part, at in self.slices.items()}
        credits = self._credits(laid_out, slice(None))
        for part, at in self.slices.items():
            for total, each in zip(totals, (*credits[part], given.where), strict=True):
                weight = (each * given.number[:, None]).ravel()
                total[at] = np.bincount(given.index[part].ravel(), weight, given.sizes[part])
        return totals


class _Rates(_Point):
    """An estimate where nothing is hidden: its information is a diagonal in closed form."""

    def variance(self) -> np.ndarray:
        chances = np.clip(self.chances, INSIDE, 1 - INSIDE)
        information = chances * (1 - chances) * (self._totals(chances)[1] + self.imagined)
        return np.divide(1, information, out=np.full(self.size, np.inf), where=self.free)

    def _totals(self, vector: np.ndarray) -> np.ndarray:
        own = self.statistics
        every = own.successes, own.trials, own.impressions
        return np.stack([np.concatenate([each[part] for part in self.slices]) for each in every])


def _matrix(triples: list[tuple[np.ndarray, ...]], size: int) -> csr_array:
    row, column, value = (np.concatenate(each) for each in zip(*triples, strict=True))
    return coo_array((value, (row, column)), shape=(size, size)).tocsr()


def _inverse_diagonal(information: csr_array, free: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """The diagonal of the inverse of some rows and columns of the information.

    Args:
        information: [size, size] symmetric.
        free: the rows and columns.
        apart: [free] bool, which of them belong to documents; the others are the border.
    """
    own = information[free][:, free].tocsr()
    documents, border = np.flatnonzero(apart), np.flatnonzero(~apart)
    found = np.empty(len(free))
    beside = own[documents][:, border].tocsr()
    within, parts = own[border][:, border].toarray(), []
    for members, diagonal, solved in _by_blocks(own[documents][:, documents].tocsr(), beside):
        found[documents[members]] = diagonal
        within -= (beside[members].T @ solved).toarray()
        parts.append((documents[members], solved))
    between = _inverse(within)
    found[border] = np.diag(between)
    for members, solved in parts:
        found[members] += solved.multiply(solved @ between).sum(1)
    return found


def _by_blocks(
    matrix: csr_array, beside: csr_array
) -> Iterator[tuple[np.ndarray, np.ndarray, csr_array]]:
    """Yield some members of a matrix of blocks at a time, the diagonal of its inverse there, and
    that inverse times `beside`.

    Blocks of one size are inverted together, as many as memory takes. Of a block that is too large
    the diagonal is infinite: it gets no errors. Beside it, its own diagonal must do.
    """
    number, block = connected_components(matrix, directed=False)
    sizes = np.bincount(block, minlength=number)
    order = np.argsort(block, kind="stable")
    matrix, beside = matrix[order][:, order].tocsr(), beside[order]
    ends = np.cumsum(sizes)
    for size in np.unique(sizes):
        starts = (ends - sizes)[sizes == size]
        if size > LARGEST:
            LOGGER.warning("%d documents shown together are too many for errors", size)
            for start in starts:
                own = slice(start, start + size)
                alone = 1 / np.maximum(matrix.diagonal()[own], FLAT)
                yield order[own], np.full(size, np.inf), diags_array(alone) @ beside[own]
            continue
        entries = len(starts) * size * max(size, beside.shape[1])
        for some in np.array_split(starts, min(len(starts), -(-entries // ENTRIES))):
            members = some[:, None] + np.arange(size)
            inverse = _inverse(_dense(matrix, members))
            own = members.ravel()
            solved = inverse @ beside[own].toarray().reshape(*members.shape, -1)
            diagonal = np.diagonal(inverse, axis1=1, axis2=2).ravel()
            yield order[own], diagonal, csr_array(solved.reshape(len(own), -1))


def _dense(matrix: csr_array, members: np.ndarray) -> np.ndarray:
    """[blocks, n, n] blocks on the diagonal of a matrix, which begin at the first of `members`."""
    blocks, size = members.shape
    rows = matrix[members.ravel()].tocoo()
    row, column = rows.coords
    block, place = np.divmod(row, size)
    dense = np.zeros((blocks, size, size))
    dense[block, place, column - members[block, 0]] = rows.data
    return dense


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """[..., n, n] inverses of symmetric matrices.

    A direction in which the likelihood is flat, or bends upwards because EM is not quite at its
    end, has next to no information, instead of infinitely little or less than none.
    """
    if not matrix.size:
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.maximum(values, FLAT / 10)[..., None, :]) @ vectors.swapaxes(-1, -2)

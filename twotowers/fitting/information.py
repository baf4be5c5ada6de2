"""How sure fitted probabilities are: standard errors and intervals, by the observed information.

The score of a log-odds h of a probability p is what its expected trials say against it (Fisher's
identity; Eq. 5.10 of the thesis), given the clicks,

    s = successes - p trials,

which is what counting and EM know. The observed information is I = -ds/dh at the estimate, by
differences of exact scores, place by place within a page. Where nothing is hidden this is
p (1 - p) trials, and the standard error of p is sqrt(p (1 - p) / trials). A prior that smooths the
estimate counts with what it imagines.

Documents of different queries share no page. So I consists of a block per set of documents that
were shown together, and of a border of what all pages share: positions, and what there is once.
The inverse needs the inverses of the blocks only (Schur's complement).

At 0 and 1 the likelihood has a slope instead of a maximum. There an interval is one-sided: without
a success in n trials it ends at 1 - .05^(1 / n), and the standard error is 1 / n, as if the
likelihood were a density of p.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from twotowers.errors import InputError
from twotowers.files.blocks import CELLS, blocks, in_order
from twotowers.fitting.pair_counts import factor_components
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics
from twotowers.fitting.steps import EMState, credits_of, slices_of
from twotowers.intervals import interval
from twotowers.models.protocol import ONCE, PAGES, PER_DOCUMENT, ClickModel, of_documents

LOGGER = logging.getLogger(__name__)

LEVEL = 0.95

STEP = 1e-5
"""Of the differences of scores, in log-odds: they are exact to about as large a share."""
EDGE = 0.01
"""An estimate that fewer successes, or fewer failures, stand behind is at 0, or at 1."""
INSIDE = 1e-6
"""How far from 0 and 1 the slope is taken there."""
NEAREST = 1e-12
"""An estimate that is neither 0 nor 1 counts as this far from them, if it is nearer."""
FLAT = 1e-4
"""The least information that counts, in trials: less says nothing of a probability."""
ENTRIES = 4_000_000
"""Of the blocks that are inverted at a time."""
LARGEST = 5_000
"""The most probabilities whose information is inverted as one matrix. That takes a minute and a
gigabyte."""


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


@dataclass(frozen=True)
class PageSet:
    """Some rows of `Statistics`, and all query-document pairs on them, by their numbers.

    No other set has these pairs. So each set can be worked on by itself. Pairs without a row are in
    some set, too. If the pairs of all sets are put into one sequence, set after set, `order` [pairs
    of the log] is the place of each pair in it, and `start` the place of this set's first pair.
    """

    rows: np.ndarray
    pairs: np.ndarray
    start: int
    order: np.ndarray

    def place(self, pair: np.ndarray) -> np.ndarray:
        """Where pairs of the set are in `pairs`."""
        return self.order[pair] - self.start


def page_sets(statistics: Statistics, *, cells: int = CELLS) -> list[PageSet]:
    """Divide all rows and pairs, about so many cells each; more if pages share documents.

    >>> from twotowers.fitting.statistics import distinct_pages
    >>> from twotowers.models.dependent_click import DependentClick
    >>> pairs = np.array([[0, 3], [1, 2], [3, 4]])
    >>> pages = distinct_pages(pairs, np.ones((3, 2), bool), np.ones((3, 2), bool))
    >>> statistics = Statistics.of_pages(DependentClick(), pages)
    >>> [(each.rows.tolist(), each.pairs.tolist()) for each in page_sets(statistics, cells=2)]
    [([0, 2], [0, 3, 4]), ([1], [1, 2])]
    """
    rows, length = statistics.where.shape
    own = of_documents(statistics.model.parts)
    kind, of_rows = np.zeros(0, int), np.arange(rows)
    if own:
        pair, pairs = statistics.index[own[0]], statistics.sizes[own[0]]
        row, place = np.nonzero(statistics.where)
        # Of a row with one position, no pair meets another.
        kind = (
            np.arange(pairs)
            if length == 1
            else factor_components(row, pair[row, place], factors=pairs)
        )
        of_rows = kind[pair[of_rows, statistics.where.argmax(1)]]
    by_kind = np.argsort(kind, kind="stable")
    order = np.empty_like(by_kind)
    order[by_kind] = np.arange(len(kind))
    by_row = np.argsort(of_rows, kind="stable")
    of_rows = of_rows[by_row]
    starts = np.flatnonzero(np.diff(of_rows, prepend=-1))
    starts = starts[np.diff(starts // max(cells // length, 1), prepend=-1) > 0]
    ends = np.searchsorted(kind[by_kind], of_rows[starts[1:]])
    return [
        PageSet(by_row[start:stop], by_kind[low:high], int(low), order)
        for (start, stop), (low, high) in zip(
            pairwise([*starts, rows]), pairwise([0, *ends, len(kind)]), strict=True
        )
    ]


def holds_scale(model: ClickModel) -> bool:
    """Whether clicks leave a scale open that attraction and examination share.

    Then errors are those of what is left when the examination of the first position is known.
    """
    return "examination" in model.parts and model.counts is None


def intervals(
    statistics: Statistics, parameters: Mapping[str, np.ndarray], *, prior: Prior | None = None
) -> dict[str, Intervals]:
    """Standard errors and intervals of fitted probabilities, by part.

    `statistics` are of the log that they were fitted to, by a model with `counts` or
    `expectations`. `parameters`, per part [size] and NaN where nothing is known, are the maximum of
    the likelihood, or of likelihood and prior. Elsewhere the curvature is taken as it is.
    """
    model = statistics.model
    if model.counts is None and model.expectations is None:
        raise InputError(
            f"{type(model).__name__} has neither counts nor expectations",
            field="uncertainty",
            expected="a model that counting or EM fits",
        )
    point = _Point(statistics, parameters, prior or Prior())
    variance, slope = point.variance(), point.slope()
    return {part: point.interval(at, variance[at], slope[at]) for part, at in point.slices.items()}


class _Point:
    """An estimate as one vector, with the trials of each of its probabilities."""

    def __init__(self, statistics: Statistics, parameters: Mapping, prior: Prior):
        self.statistics, self.model = statistics, statistics.model
        self.slices = slices_of(statistics.sizes)
        values = np.concatenate([np.ravel(parameters[part]) for part in self.slices])
        self.size = len(values)
        self.of_documents = np.zeros(self.size, bool)
        self.succeeded, self.imagined = np.zeros(self.size), np.zeros(self.size)
        for part, at in self.slices.items():
            self.of_documents[at] = self.model.parts[part] == PER_DOCUMENT
            self.succeeded[at], self.imagined[at] = prior.of(part)
        known = ~np.isnan(values)
        self.chances = np.where(known, values, 0.5)
        self.impressions = self._impressions()
        successes, trials = self._smoothed(self.chances)
        # A prior imagines jumps from below, too, which nobody can make.
        tried = known & (trials > 0) & (self.of_documents | (self.impressions > 0))
        if holds_scale(self.model):
            tried[self.slices["examination"].start] = False
            tried &= self._linked()
        self.at_zero = tried & (successes < EDGE)
        self.at_one = tried & (trials - successes < EDGE) & ~self.at_zero
        self.free = tried & ~self.at_zero & ~self.at_one

    def interval(self, at: slice, variance: np.ndarray, slope: np.ndarray) -> Intervals:
        """Errors and intervals of the part at that place, from [size] variances and slopes."""
        # Log-odds this uncertain say nothing of the probability.
        sure = self.free[at] & (variance < 1 / FLAT)
        spread = np.sqrt(np.where(sure, variance, 0))
        odds = logit(np.clip(self.chances[at], NEAREST, 1 - NEAREST))
        chance = expit(odds)
        error = np.where(sure, chance * (1 - chance) * spread, np.nan)
        low, high = (
            np.where(sure, expit(end), edge)
            for end, edge in zip(interval(odds, spread, level=LEVEL), (0.0, 1.0), strict=True)
        )
        steep = slope > 0
        slope = np.where(steep, slope, 1)
        reach = -np.expm1(np.log1p(-LEVEL) / slope)
        error = np.where(steep, np.minimum(1 / slope, 1), error)
        high = np.where(steep & self.at_zero[at], reach, high)
        low = np.where(steep & self.at_one[at], 1 - reach, low)
        return Intervals(error, low, high, self.impressions[at])

    def slope(self) -> np.ndarray:
        """[size] how steeply the likelihood falls from 0 or 1, in nats; 0 for other estimates."""
        edge = self.at_zero | self.at_one
        if not edge.any():
            return np.zeros(self.size)
        inside = np.clip(self.chances, INSIDE, 1 - INSIDE)
        successes, trials = self._smoothed(np.where(edge, inside, self.chances))
        slope = successes / inside - (trials - successes) / (1 - inside)
        return np.where(self.at_zero, -slope, slope) * edge

    def variance(self) -> np.ndarray:
        """[size] of the log-odds; infinite where they are not free."""
        chances = np.clip(self.chances, NEAREST, 1 - NEAREST)
        if self.model.counts is not None:  # Nothing is hidden.
            information = chances * (1 - chances) * self._smoothed(chances)[1]
            return np.divide(1, information, out=np.full(self.size, np.inf), where=self.free)
        imagined = chances * (1 - chances) * self.imagined
        border = np.flatnonzero(~self.of_documents & self.free)
        variance, parts = np.full(self.size, np.inf), []
        if len(border) > LARGEST:
            LOGGER.warning("%d probabilities of positions are too many for errors", len(border))
            return variance
        within = np.diag(imagined[border])

        def of_set(some: PageSet) -> tuple[list[tuple], np.ndarray]:
            return self._of_set(some, chances, imagined)

        # Sets are added in their order, so sums do not depend on the threads.
        for solutions, outer in in_order(of_set, page_sets(self.statistics)):
            within += outer
            for documents, diagonal, solved in solutions:
                variance[documents] = diagonal
                parts.append((documents, solved))
        between = _inverse(within)
        variance[border] = np.diag(between)
        for documents, solved in parts:
            variance[documents] += solved.multiply(solved @ between).sum(1)
        return variance

    def _of_set(
        self, some: PageSet, chances: np.ndarray, imagined: np.ndarray
    ) -> tuple[list[tuple[np.ndarray, np.ndarray, csr_array]], np.ndarray]:
        """What some pages tell.

        Some of the free log-odds of documents at a time, the diagonal of the inverse of their
        information, and that inverse times the information that they share with the free border;
        and what is left of that border's information, since documents are free.
        """
        # Here the log-odds of documents come first, and those of the border after them.
        kinds, own, size = self.model.parts, {}, 0
        for part in sorted(kinds, key=lambda part: kinds[part] != PER_DOCUMENT):
            index = self.statistics.index[part][some.rows]
            if kinds[part] == PER_DOCUMENT:
                own[part], size = size + some.place(index), size + len(some.pairs)
            else:
                own[part], size = size + index, size + self.statistics.sizes[part]
        starts = [self.slices[part].start for part in of_documents(kinds)]
        documents = np.concatenate([some.pairs[:0], *(start + some.pairs for start in starts)])
        apart = np.arange(len(documents))
        triples = [(apart, apart, imagined[documents]), *self._triples(some.rows, chances, own)]
        row, column, value = (np.concatenate(each) for each in zip(*triples, strict=True))
        matrix = coo_array((value, (row, column)), shape=(size, size)).tocsr()
        matrix = ((matrix + matrix.T) / 2).tocsr()
        free = np.flatnonzero(self.free[documents])
        border = len(apart) + np.flatnonzero(self.free[~self.of_documents])
        outer = matrix[border][:, border].toarray()
        matrix, beside = matrix[free][:, free].tocsr(), matrix[free][:, border].tocsr()
        solutions = []
        for members, diagonal, solved in _by_blocks(matrix, beside):
            outer -= (beside[members].T @ solved).toarray()
            solutions.append((documents[free[members]], diagonal, solved))
        return solutions, outer

    def _triples(
        self, rows: np.ndarray, chances: np.ndarray, own: Mapping[str, np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the information of some distinct pages, as rows, columns and values to add up to a
        matrix M; the information is (M + M') / 2. `own` has by part [rows, K] what M has there."""
        given, model = self.statistics, self.model
        clicks, where, number = given.clicks[rows], given.where[rows], given.number[rows][:, None]
        page = {part: chances[at][given.index[part][rows]] for part, at in self.slices.items()}

        def scores(page: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            credits = credits_of(model, page, clicks, where)
            return {part: one - trials * page[part] for part, (one, trials) in credits.items()}

        before = scores(page)
        for part, values in page.items():
            # A part with a single probability is moved at all places together.
            once = model.parts[part] == ONCE
            for place in range(1 if once else values.shape[1]):
                at = slice(place, place + 1)
                columns, moved = slice(None) if once else at, values.copy()
                moved[:, columns] = expit(logit(values[:, columns]) + STEP)
                after = scores({**page, part: moved})
                for other in page:
                    amount = (before[other] - after[other]) / STEP * number
                    kept = amount != 0
                    column = np.broadcast_to(own[part][:, at], amount.shape)
                    yield own[other][kept], column[kept], amount[kept]

    def _smoothed(self, vector: np.ndarray) -> np.ndarray:
        """[2, size] successes and trials, with those that the prior imagines."""
        return self.problem.totals(vector) + np.stack([self.succeeded, self.imagined])

    def _linked(self) -> np.ndarray:
        """[size] False where documents at several positions lead to no first position.

        The scale of examination is open there, unless a prior or other parts of the model tell it.
        """
        parts = [self.slices[part] for part in ("attraction", "examination")]
        if self.model.statistics == PAGES or any(self.imagined[at].any() for at in parts):
            return np.ones(self.size, bool)
        index, where = self.statistics.index, self.statistics.where
        ends = (
            parts[0].start + index["attraction"][where],
            parts[1].start + index["examination"][where],
        )
        shape = self.size, self.size
        graph = coo_array((np.ones(len(ends[0])), ends), shape)
        _, component = connected_components(graph, directed=False)
        linked = component == component[parts[1].start]
        for part, at in self.slices.items():
            linked[at] |= part not in ("attraction", "examination")
        return linked

    @cached_property
    def problem(self) -> EMState:
        """The E-step."""
        return EMState(self.statistics)

    def _impressions(self) -> np.ndarray:
        """[size] how often what a probability belongs to was shown."""
        given, totals = self.statistics, np.zeros(self.size)
        for rows in blocks(*given.where.shape):
            shown = (given.where[rows] * given.number[rows][:, None]).ravel()
            for part, at in self.slices.items():
                np.add.at(totals[at], given.index[part][rows].ravel(), shown)
        return totals


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

"""Closed form and exact EM for click models of pages, on sufficient statistics.

Both estimators ask the model for successes and trials of each of its parts. A probability is
estimated by the share of successes:

    p = (successes + prior successes) / (trials + prior successes + prior failures)

If successes and trials are observed, this is the maximum of the likelihood (`fit_counts`). If they
are hidden, EM alternates between their expectations given the clicks and this formula
(`fit_pages`; Dempster et al. 1977; Chuklin et al. 2015, Chapter 4). Attraction has a trial only
where the document is examined, not at every impression. That leaves less information hidden, so EM
needs fewer steps for the same likelihood.

    >>> import numpy as np
    >>> from twotowers.fitting.statistics import distinct_pages
    >>> from twotowers.models.cascade import Cascade
    >>> pages = distinct_pages(np.array([[0, 1], [0, 1], [1, 0]]),
    ...                        np.array([[1, 0], [0, 1], [0, 0]], bool), np.ones((3, 2), bool))
    >>> fit_counts(Statistics.of_pages(Cascade(), pages)).parameters["attraction"].round(3).tolist()
    [0.333, 0.5]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.fitting.alike import Alike
from twotowers.fitting.ascent import climb
from twotowers.fitting.blocks import blocks, in_order
from twotowers.fitting.statistics import Statistics
from twotowers.models.chances import Chance, Share
from twotowers.models.page import PAGES, Credits, losses
from twotowers.models.protocol import PER_DOCUMENT, of_documents

START = 0.5
"""The start of every probability except examination of the first position."""


@dataclass(frozen=True)
class PagesEstimate:
    """The fitted parameters of a model.

    Attributes:
        parameters: part -> [size] probabilities, NaN for those without trials and prior.
        trials: part -> [size] number of trials, observed or expected, without those of the prior.
        history: log-likelihood in nats (plus the log density of the prior, up to a constant) at
            the start and after each iteration. `fit_counts` gives the final value only; a fit
            that keeps no page (`twotowers.fitting.counted`) gives none.
        converged: whether the last iteration gained less than the tolerance.
    """

    parameters: dict[str, np.ndarray]
    trials: dict[str, np.ndarray]
    history: np.ndarray
    converged: bool = True


def fit_counts(statistics: Statistics, *, prior: tuple[float, float] = (0.0, 0.0)) -> PagesEstimate:
    """Maximum likelihood in closed form, for models whose successes and trials are observed.

    The module's docstring has the formula and an example.

    Args:
        statistics: sufficient statistics of a log, for a model with `counts`.
        prior: (successes, failures), each 0 or more, added to those of every probability. PyClick
            uses (1, 1).

    Raises:
        InputError: the model has no `counts`, or the prior is out of range.
    """
    problem = PagesProblem(statistics, prior, "counts")
    nothing = np.full(problem.size, np.nan)
    totals = problem.totals(nothing)
    found = problem.shares(totals, nothing)
    return PagesEstimate(
        problem.split(found), problem.split(totals[1]), np.array([problem.objective(found)])
    )


def fit_pages(
    statistics: Statistics,
    *,
    start: Mapping[str, np.ndarray | float] | None = None,
    prior: tuple[float, float] = (0.0, 0.0),
    iterations: int = 10_000,
    tolerance: float = 1e-10,
    accelerate: bool = True,
) -> PagesEstimate:
    """Maximise the likelihood of the clicks by EM.

    Args:
        statistics: sufficient statistics of a log, for a model with `expectations`.
        start: part -> one probability, or one for each of its parameters. The default is START.
            If documents have a start each, EM takes longer, since no two pairs are then alike.
            Without a prior, the default for the examination of the first position is 1. EM keeps
            it, which fixes the scale that examination and attraction share.
        prior: as in `fit_counts`.
        iterations, tolerance, accelerate: see `twotowers.fitting.em.fit_em`.

    Raises:
        InputError: the model has no `expectations`, an argument is out of range, or the likelihood
            fell, which means that the model's `expectations` do not fit its `conditional`.

    Example:
        >>> import numpy as np
        >>> from twotowers.models.independent import as_pages
        >>> from twotowers.models.position_based import PositionBased
        >>> statistics = Statistics.of_cells(
        ...     as_pages(PositionBased()), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]),
        ...     np.full(4, 1000), np.array([800, 400, 200, 100]), pairs=2, positions=2,
        ... )
        >>> fit_pages(statistics).parameters["examination"].round(3).tolist()
        [1.0, 0.5]
    """
    problem, given, model = (
        PagesProblem(statistics, prior, "expectations"),
        start or {},
        statistics.model,
    )
    # Pairs that start alike stay alike.
    apart = any(np.ndim(given.get(part, 0)) for part in of_documents(model.parts))
    alike = None if apart else Alike.of(statistics)
    if alike is not None:
        problem = PagesProblem(alike.statistics, prior, "expectations", alike.repeats)
    found, history, converged = climb(
        problem,
        problem.start(given),
        iterations=iterations,
        tolerance=tolerance,
        accelerate=accelerate,
        name=type(model).__name__,
    )
    trials = problem.totals(found)[1]
    known = np.where(trials + sum(prior) > 0, found, np.nan)
    split = [problem.split(values) for values in (known, trials)]
    if alike is not None:
        split = [alike.spread(values) for values in split]
    return PagesEstimate(*split, history, converged)


def shares(
    successes: np.ndarray,
    trials: np.ndarray,
    prior: tuple[float, float],
    before: np.ndarray | float = np.nan,
) -> np.ndarray:
    """[size] shares of successes, those of the prior included.

    A probability without trials and prior keeps its value in `before`.
    """
    above, below = successes + prior[0], trials + sum(prior)
    found = np.minimum(above / np.where(below > 0, below, 1), 1)
    return np.where(below > 0, found, before)


def _pinned(statistics: Statistics) -> dict[str, np.ndarray]:
    """The start of examination: 1 at the first position, START elsewhere."""
    if statistics.model.parts.get("examination") in (None, PER_DOCUMENT):
        return {}
    examined = np.full(statistics.sizes["examination"], START)
    examined[0] = 1
    return {"examination": examined}


class PagesProblem:
    """EM on one vector: the probabilities of all parts, one after the other.

    Args:
        statistics: sufficient statistics of a log.
        prior: (successes, failures) added to those of every probability.
        needs: the method that the model must have, "counts" or "expectations".
        repeats: [pairs] how many pairs each pair stands for (`twotowers.fitting.alike`); None if
            each stands for itself.

    Attributes:
        size: length of the vector.
        often: [size] how many probabilities each entry of the vector stands for, or 1.
        weights: part -> [rows] how often a row counts in the totals of a probability.
        multiplicity: [rows] how often a row counts in the log-likelihood.
        blocks: the rows that are worked on at a time.
    """

    def __init__(
        self,
        statistics: Statistics,
        prior: tuple[float, float],
        needs: str,
        repeats: np.ndarray | None = None,
    ):
        model = statistics.model
        if not hasattr(model, needs):
            other = "'em'" if needs == "counts" else "'counting'"
            raise InputError(
                f"{type(model).__name__} has no {needs}", field="method",
                expected=f"{other} or 'likelihood'",
            )  # fmt: skip
        for count in prior:
            check_range(count, field="prior", low=0, high=1e9)
        self.statistics, self.prior, self.needs = statistics, prior, needs
        self.blocks = blocks(*statistics.clicks.shape)
        ends = np.cumsum([0, *statistics.sizes.values()])
        self.slices = {
            part: slice(*ends[place : place + 2]) for place, part in enumerate(statistics.sizes)
        }
        self.size = int(ends[-1])
        self.often, self.multiplicity = 1.0, statistics.number
        self.weights = dict.fromkeys(self.slices, statistics.number)
        if repeats is not None:
            own, self.often = of_documents(model.parts), np.ones(self.size)
            for part in own:
                self.often[self.slices[part]] = repeats
            self.multiplicity = statistics.number * repeats[statistics.index[own[0]][:, 0]]
            self.weights |= {part: self.multiplicity for part in self.slices if part not in own}

    def start(self, given: Mapping) -> np.ndarray:
        """The first vector; see `fit_pages`."""
        vector = np.full(self.size, START)
        pinned = {} if self.prior[1] else _pinned(self.statistics)
        for part, values in {**pinned, **given}.items():
            if part not in self.slices:
                raise InputError(
                    f"{part!r} is no part", field="start", expected=", ".join(self.slices)
                )
            vector[self.slices[part]] = values
        return vector

    def split(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The probabilities by part."""
        return {part: vector[place].copy() for part, place in self.slices.items()}

    def objective(self, vector: np.ndarray) -> float:
        """Log-likelihood plus log prior. NaN parameters have no trials, so START replaces them."""
        given, known = self.statistics, np.where(np.isnan(vector), START, vector)
        rows, prior = np.empty(len(given.number)), np.empty(self.size)
        successes, failures = self.prior

        def of_rows(block: slice) -> None:
            rows[block] = self._log_likelihood(known, block)

        def of_prior(block: slice) -> None:
            chance = Chance.of(known[block])
            prior[block] = successes * chance.log + failures * chance.other

        for work, parts in ((of_rows, self.blocks), (of_prior, blocks(self.size))):
            deque(in_order(work, parts), maxlen=0)
        return float(self.multiplicity @ rows + (self.often * prior).sum())

    def _log_likelihood(self, vector: np.ndarray, block: slice) -> np.ndarray:
        """[rows] ln P of the clicks of some rows."""
        given, model = self.statistics, self.statistics.model
        clicks, where = given.clicks[block], given.where[block]
        if model.shares:
            parts = {part: Share.of(each) for part, each in self._chances(vector, block).items()}
        else:
            parts = {}
            for part, place in self.slices.items():
                own, index = vector[place], self._index(part, block)
                # Both orders give the same numbers. Logarithms of the smaller array take less time.
                few = len(own) < index.size
                parts[part] = Chance.of(own).at(index) if few else Chance.of(own[index])
        if model.statistics == PAGES:
            return model.log_likelihood(parts, clicks, where)
        return -losses(model.of_cells(parts), clicks, where).sum(-1)

    def _chances(self, vector: np.ndarray, block: slice) -> dict[str, np.ndarray]:
        """Part -> probability that applies at each position of some rows."""
        return {part: vector[at][self._index(part, block)] for part, at in self.slices.items()}

    def _index(self, part: str, block: slice) -> np.ndarray:
        """The part's index at some rows, in a shape that broadcasts to [rows, K]: what rows or
        positions share is there once."""
        index = self.statistics.index[part]
        by_row, by_place = index.strides
        return index[block if by_row else slice(1), slice(None if by_place else 1)]

    def _credits(self, vector: np.ndarray, block: slice) -> Credits:
        given = self.statistics
        clicks, where = given.clicks[block], given.where[block]
        if self.needs == "counts":
            return given.model.counts(clicks, where)
        return given.model.expectations(self._chances(vector, block), clicks, where)

    def totals(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The E-step: successes and trials of each probability, counted or expected."""

        def weighed(block: slice) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
            found = []
            for part, credit in self._credits(vector, block).items():
                index, number = self.statistics.index[part], self.weights[part][block]
                if index.strides[0]:
                    index = index[block].T.ravel()
                    weights = [(each.T * number).ravel() for each in credit]
                else:  # All rows share their probabilities.
                    index, weights = index[0], [number @ each for each in credit]
                found.append((part, index, weights))
            return found

        totals = np.zeros(self.size), np.zeros(self.size)
        for found in in_order(weighed, self.blocks):
            for part, index, weights in found:
                for total, weight in zip(totals, weights, strict=True):
                    # Blocks are added in their order, so sums do not depend on the threads.
                    np.add.at(total[self.slices[part]], index, weight)
        return totals

    def shares(self, totals: tuple[np.ndarray, np.ndarray], before: np.ndarray) -> np.ndarray:
        """The M-step; see the function `shares`."""
        return shares(*totals, self.prior, before)

    def step(self, vector: np.ndarray) -> np.ndarray:
        """An E-step and an M-step."""
        return self.shares(self.totals(vector), vector)

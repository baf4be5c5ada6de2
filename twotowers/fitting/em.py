"""Closed form and exact EM for all click models, on sufficient statistics.

Both estimators ask the model for successes and trials of each of its parts. A probability is
estimated by the share of successes:

    p = (successes + imagined successes) / (trials + imagined trials)

where a `Prior` imagines. If successes and trials are observed, this is the maximum of the
likelihood (`fit_counts`). If they are hidden, EM alternates between their expectations given the
clicks and this formula (`fit_em`; Dempster et al. 1977; Chuklin et al. 2015, Chapter 4). Attraction
has a trial only where the document is examined, if the model can tell. That leaves less information
hidden, so EM needs fewer steps for the same likelihood.

A model whose clicks are independent needs counts of cells. It gives its click probability, and for
each part P(part | click) and P(part | no click), by `posteriors`:

    >>> import numpy as np
    >>> from twotowers.models.protocol import CellModel
    >>> class TrustBias(CellModel):
    ...     # After examination, P(click) is 0.9 for an attractive document, and 0.1 for others.
    ...     def probability(self, attraction, examination):
    ...         return examination * (0.1 + 0.8 * attraction)
    ...
    ...     def posteriors(self, attraction, examination):
    ...         examined = 0.1 + 0.8 * attraction  # P(click | examined)
    ...         none = 1 - examination * examined  # P(no click)
    ...         return {
    ...             "attraction": (0.9 * attraction / examined,
    ...                            attraction * (1 - 0.9 * examination) / none),
    ...             "examination": (1, examination * (1 - examined) / none),
    ...         }
    >>> cells = Statistics.of_cells(
    ...     TrustBias(), pair=np.array([0, 0, 1, 1]), position=np.array([0, 1, 0, 1]),
    ...     impressions=np.full(4, 1000), clicks=np.array([740, 370, 260, 130]), pairs=2,
    ...     positions=2,
    ... )
    >>> fitted = fit_em(cells)
    >>> fitted.parameters["attraction"].round(3).tolist()
    [0.8, 0.2]
    >>> fitted.parameters["examination"].round(3).tolist()
    [1.0, 0.5]

Other models need distinct pages:

    >>> from twotowers.fitting.statistics import distinct_pages
    >>> from twotowers.models.cascade import Cascade
    >>> pages = distinct_pages(np.array([[0, 1], [0, 1], [1, 0]]),
    ...                        np.array([[1, 0], [0, 1], [0, 0]], bool), np.ones((3, 2), bool))
    >>> fit_counts(Statistics.of_pages(Cascade(), pages)).parameters["attraction"].round(3).tolist()
    [0.333, 0.5]
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.alike import Alike
from twotowers.fitting.ascent import climb
from twotowers.fitting.blocks import blocks, in_order
from twotowers.fitting.chains import Chain
from twotowers.fitting.estimates import Estimate
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.models.chances import Chance, Share
from twotowers.models.protocol import PAGES, PER_DOCUMENT, ClickModel, Credits, losses, of_documents

NOTHING = Prior()

START = 0.5
"""The start of every probability except examination of the first position."""


def fit_counts(statistics: Statistics | Totals, *, prior: Prior = NOTHING) -> Estimate:
    """Maximum likelihood in closed form, for models whose successes and trials are observed.

    The module's docstring has the formula and an example.

    Args:
        statistics: sufficient statistics of a log, for a model with `counts`.
        prior: imagined trials. PyClick imagines 2 with a success.

    Raises:
        InputError: the model has no `counts`, or the prior names a part that it lacks.
    """
    _check(statistics.model, "counts", "'em'")
    prior.check(statistics.sizes)
    if isinstance(statistics, Totals):
        found = {}
        for part, trials in statistics.trials.items():
            successes, imagined = prior.of(part)
            found[part] = _shares(statistics.successes[part] + successes, trials + imagined)
        return Estimate(found, statistics.trials, prior=prior, source=lambda: statistics)
    problem = Problem(statistics, prior)
    nothing = np.full(problem.size, np.nan)
    totals = problem.totals(nothing)
    found = problem.shares(totals, nothing)
    history = np.array([problem.objective(found)])
    parameters, trials = problem.split(found), problem.split(totals[1])
    return Estimate(parameters, trials, history, True, prior, lambda: statistics)


def fit_em(
    statistics: Statistics,
    *,
    start: Mapping[str, np.ndarray | float] | None = None,
    prior: Prior = NOTHING,
    iterations: int = 10_000,
    tolerance: float = 1e-10,
    accelerate: bool = True,
) -> Estimate:
    """Maximise the likelihood of the clicks by EM.

    Args:
        statistics: sufficient statistics of a log, for a model with `expectations`.
        start: part -> one probability, or one for each of its parameters, in [0, 1]. The default is
            START. If documents have a start each, EM takes longer, since no two pairs are then
            alike. Unless the prior imagines failures of examination, the default for the
            examination of the first position is 1. EM keeps 0 and 1 then, so this fixes the scale
            that examination and attraction share.
        prior: imagined successes and trials, of all parts unless it says otherwise.
        iterations: largest number of iterations, 1 or more.
        tolerance: in [0, 1]. EM stops when an iteration gains no more than this, relative to the
            absolute log-likelihood or to 1, whichever is larger.
        accelerate: True makes an iteration one cycle of SQUAREM (Varadhan and Roland, 2008, their
            third step length). A cycle takes the time of about three EM steps and gets as far as
            many. False makes it one EM step.

    Raises:
        InputError: the model has no `expectations`, an argument is out of range, the start makes
            the clicks impossible, or the likelihood fell, which means that the model's
            `expectations` do not fit its click probability.

    Example:
        >>> from twotowers.models.position_based import PositionBased
        >>> statistics = Statistics.of_cells(
        ...     PositionBased(), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]),
        ...     np.full(4, 1000), np.array([800, 400, 200, 100]), pairs=2, positions=2,
        ... )
        >>> fit_em(statistics).parameters["examination"].round(3).tolist()
        [1.0, 0.5]
    """
    model, given = statistics.model, start or {}
    _check(model, "expectations", "'counting'")
    prior.check(statistics.sizes)
    # Pairs that start alike stay alike.
    apart = any(np.ndim(given.get(part, 0)) for part in of_documents(model.parts))
    alike = None if apart else Alike.of(statistics)
    problem = (
        Problem(statistics, prior)
        if alike is None
        else Problem(alike.statistics, prior, alike.repeats)
    )
    found, history, converged = climb(
        problem,
        problem.start(given),
        iterations=iterations,
        tolerance=tolerance,
        accelerate=accelerate,
        name=type(model).__name__,
    )
    trials = problem.totals(found)[1]
    split = [problem.split(values) for values in (found, trials)]
    for part, values in split[0].items():
        values[split[1][part] + prior.of(part)[1] == 0] = np.nan
    if alike is not None:
        split = [alike.spread(values) for values in split]
    return Estimate(*split, history, converged, prior, lambda: statistics)


def _check(model: ClickModel, needed: str, other: str) -> None:
    if getattr(model, needed) is None:
        raise InputError(
            f"{type(model).__name__} has no {needed}",
            field="method",
            expected=f"{other} or 'likelihood'",
        )


def _shares(
    successes: np.ndarray, trials: np.ndarray, before: np.ndarray | float = np.nan
) -> np.ndarray:
    """[size] shares of successes. A probability without trials keeps its value in `before`."""
    found = np.minimum(successes / np.where(trials > 0, trials, 1), 1)
    return np.where(trials > 0, found, before)


class Problem:
    """EM on one vector: the probabilities of all parts, one after the other.

    Args:
        statistics: sufficient statistics of a log, of a model with `counts` or `expectations`.
        prior: imagined successes and trials.
        repeats: [pairs] how many pairs each pair stands for (`twotowers.fitting.alike`); None if
            each stands for itself.

    Attributes:
        size: length of the vector.
        often: [size] how many probabilities each entry of the vector stands for.
        weights: part -> [rows] how often a row counts in the totals of a probability.
        multiplicity: [rows] how often a row counts in the log-likelihood.
        blocks: the rows that are worked on at a time.
        chain: the pages, if the model is a chain, whose E-step is of its own; else None.
    """

    def __init__(
        self, statistics: Statistics, prior: Prior = NOTHING, repeats: np.ndarray | None = None
    ):
        model, self.statistics, self.prior = statistics.model, statistics, prior
        self.blocks = blocks(*statistics.clicks.shape)
        ends = np.cumsum([0, *statistics.sizes.values()])
        self.slices = {
            part: slice(*ends[place : place + 2]) for place, part in enumerate(statistics.sizes)
        }
        self.size = int(ends[-1])
        self.often, self.multiplicity = np.broadcast_to(1.0, self.size), statistics.number
        self.weights = dict.fromkeys(self.slices, statistics.number)
        self.chain = Chain.of(statistics, repeats)
        self.latest = None, None  # a vector and its totals
        if repeats is not None:
            own, self.often = of_documents(model.parts), np.ones(self.size)
            for part in own:
                self.often[self.slices[part]] = repeats
            self.multiplicity = statistics.number * repeats[statistics.index[own[0]][:, 0]]
            self.weights |= {part: self.multiplicity for part in self.slices if part not in own}

    def start(self, given: Mapping) -> np.ndarray:
        """The first vector; see `fit_em`."""
        vector, kinds = np.full(self.size, START), self.statistics.model.parts
        if kinds.get("examination", PER_DOCUMENT) != PER_DOCUMENT:
            successes, trials = self.prior.of("examination")
            if successes == trials:
                vector[self.slices["examination"].start] = 1
        for part, values in given.items():
            if part not in self.slices:
                raise InputError(
                    f"{part!r} is no part", field="start", expected=", ".join(self.slices)
                )
            own = vector[self.slices[part]]
            if np.shape(values) not in ((), own.shape):
                raise InputError(
                    f"{part} has shape {np.shape(values)}", field="start", expected=f"{own.shape}"
                )
            own[:] = values
            if not ((own >= 0) & (own <= 1)).all():
                raise InputError(f"{part} is out of range", field="start", expected="[0, 1]")
        return vector

    def split(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """[..., size] values by part, without a copy."""
        return {part: values[..., place] for part, place in self.slices.items()}

    def objective(self, vector: np.ndarray) -> float:
        """Log-likelihood plus log prior. NaN parameters have no trials, so START replaces them."""
        known = np.where(np.isnan(vector), START, vector)
        if self.chain:
            return self._expect(known)[1] + self._of_counts(known)

        def of_rows(block: slice) -> float:
            return (self.multiplicity[block] * self._log_likelihood(known, block)).sum()

        return float(sum(in_order(of_rows, self.blocks))) + self._of_counts(known)

    def _of_counts(self, vector: np.ndarray) -> float:
        """The log prior, and the log-likelihood of what a chain knows of attraction."""
        found = 0.0
        for part, place in self.slices.items():
            successes, trials = self.prior.of(part)
            own, often, counts = vector[place], self.often[place], np.zeros((2, 1))
            if self.chain and part == "attraction":
                counts = self.chain.known
            elif not trials:
                continue
            counts = np.broadcast_to(counts, (2, len(own)))

            def of_block(block: slice, own=own, often=often, counts=counts, s=successes, n=trials):
                chance, (clicks, others) = Chance.of(own[block]), counts[:, block]
                value = (s + clicks) * chance.log + (n - s + others) * chance.other
                return (often[block] * value).sum()

            found += sum(in_order(of_block, blocks(len(own))))
        return float(found)

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
        if given.model.counts is not None:
            return given.model.counts(clicks, where)
        return given.model.expectations(self._chances(vector, block), clicks, where)

    def _expect(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The E-step of a chain, and the log-likelihood of what it does not know."""
        totals = np.zeros((2, self.size))
        return totals, self.chain.expect(self.split(vector), self.split(totals))

    def totals(self, vector: np.ndarray) -> np.ndarray:
        """The E-step: [2, size] successes and trials of each probability, counted or expected."""
        if vector is self.latest[0]:
            return self.latest[1]
        if self.chain:
            return self._expect(vector)[0]

        def weighed(block: slice) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
            found = []
            for part, credit in self._credits(vector, block).items():
                index, number = self.statistics.index[part], self.weights[part][block]
                if index.strides[0]:
                    index = index[block].T.ravel()
                    weights = [(each.T * number).ravel() for each in credit]
                else:  # All rows share their probabilities.
                    index, weights = index[0], [(each.T * number).sum(1) for each in credit]
                found.append((part, index, weights))
            return found

        totals = np.zeros((2, self.size))
        for found in in_order(weighed, self.blocks):
            for part, index, weights in found:
                for total, weight in zip(totals, weights, strict=True):
                    # Blocks are added in their order, so sums do not depend on the threads.
                    np.add.at(total[self.slices[part]], index, weight)
        return totals

    def shares(self, totals: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The M-step: shares of successes, those of the prior included. A probability without
        trials keeps its value in `before`."""
        found = np.empty(self.size)
        for part, place in self.slices.items():
            imagined = np.reshape(self.prior.of(part), (2, 1))

            def of_block(
                block: slice,
                own=totals[:, place],
                kept=before[place],
                imagined=imagined,
                new=found[place],
            ):
                new[block] = _shares(*own[:, block] + imagined, kept[block])

            list(in_order(of_block, blocks(place.stop - place.start)))
        return found

    def step(self, vector: np.ndarray) -> np.ndarray:
        """An E-step and an M-step."""
        return self.shares(self.totals(vector), vector)

    def measured_step(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The same, and the objective of the vector."""
        if not self.chain:
            return self.step(vector), self.objective(vector)
        totals, value = self._expect(vector)
        self.latest = vector, totals
        return self.shares(totals, vector), value + self._of_counts(vector)

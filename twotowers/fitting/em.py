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
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import xlog1py, xlogy

from twotowers.errors import InputError
from twotowers.files.blocks import blocks, in_order
from twotowers.fitting.duplicates import DuplicateGroups
from twotowers.fitting.information import Intervals, intervals
from twotowers.fitting.prior import NOTHING, Prior, shares_of
from twotowers.fitting.statistics import Statistics
from twotowers.fitting.steps import EMState
from twotowers.models.protocol import CELLS, of_documents

ROUNDING = 1e-10
"""Largest relative fall of a log-likelihood that counts as rounding."""


@dataclass(frozen=True)
class Estimate:
    """The fitted probabilities of a click model.

    Attributes:
        parameters: part -> [size] probabilities, NaN for those without trials and prior. Those of
            documents are in the order of pairs; of jumps, a position after the other.
        trials: part -> [size] number of trials, observed or expected, without those of the prior.
            Empty if the fit does not tell.
        history: log-likelihood in nats (plus the log density of the prior, up to a constant) at
            the start and after each iteration. A fit in closed form gives the final value only.
        converged: whether the last iteration gained less than the tolerance.
        prior: what the fit imagined.
        source: makes the statistics of the log that was fitted. None if they are not at hand.
    """

    parameters: Mapping[str, np.ndarray]
    trials: Mapping[str, np.ndarray] = field(default_factory=dict)
    history: np.ndarray = field(default_factory=lambda: np.empty(0))
    converged: bool = True
    prior: Prior = field(default_factory=Prior)
    source: Callable[[], Statistics] | None = field(default=None, repr=False)

    @property
    def iterations(self) -> int:
        """Number of iterations done."""
        return len(self.history) - 1

    @cached_property
    def intervals(self) -> Mapping[str, Intervals]:
        """Part -> standard errors and intervals (`twotowers.fitting.information`)."""
        return intervals(self.source(), self.parameters, prior=self.prior)

    def unknown(self) -> dict[str, float]:
        """Part -> the value of probabilities without data.

        It is what the prior imagines, or, without a prior, the mean of the part's other
        probabilities, weighted by trials.
        """
        values = {}
        for part, own in self.parameters.items():
            successes, trials = self.prior.of(part)
            weights, known = self.trials[part], ~np.isnan(own)
            if trials > 0:
                values[part] = successes / trials
            elif weights[known].sum() > 0:
                values[part] = np.average(own[known], weights=weights[known])
            else:
                values[part] = 0.5
        return values

    def filled(self) -> dict[str, np.ndarray]:
        """The parameters, with `unknown` in the place of NaN."""
        unknown = self.unknown()
        return {
            part: np.where(np.isnan(own), unknown[part], own)
            for part, own in self.parameters.items()
        }


def fit_counts(statistics: Statistics, *, prior: Prior = NOTHING) -> Estimate:
    """Maximum likelihood in closed form, for models whose successes and trials are observed.

    The module's docstring has the formula and an example. PyClick's prior is 2 trials with a
    success.
    """
    if statistics.model.statistics == CELLS:
        return _rates(statistics, prior)
    problem = EMState(statistics, prior)
    nothing = np.full(problem.size, np.nan)
    totals = problem.totals(nothing)
    found = problem.shares(totals, nothing)
    history = np.array([problem.objective(found)])
    parameters, trials = problem.split(found), problem.split(totals[1])
    return Estimate(parameters, trials, history, True, prior, lambda: statistics)


def _rates(statistics: Statistics, prior: Prior) -> Estimate:
    """`fit_counts` for a model of cells. Its one part has impressions as trials."""
    ((part, index),) = statistics.index.items()
    often = statistics.number[:, None] * statistics.where
    clicks, shown = (
        np.bincount(index.ravel(), each.ravel(), statistics.sizes[part])
        for each in (often * statistics.clicks, often)
    )
    successes, trials = clicks + prior.of(part)[0], shown + prior.of(part)[1]
    rate = shares_of(successes, trials)
    known = np.where(trials > 0, rate, 0)
    likelihood = xlogy(successes, known) + xlog1py(trials - successes, -known)
    history = np.array([likelihood.sum()])
    return Estimate({part: rate}, {part: shown}, history, True, prior, lambda: statistics)


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
            absolute log-likelihood or to 1, whichever is larger. If clicks are as rare as 1e-5, it
            ends a third of a standard error before the maximum, unless this is 0. If they are as
            rare as 1e-7, it always ends too early.
        accelerate: True makes an iteration one cycle of SQUAREM (Varadhan and Roland, 2008, their
            third step length). A cycle takes the time of about three EM steps and gets as far as
            many. False makes it one EM step.
    """
    model, given = statistics.model, start or {}
    # Pairs that start alike stay alike.
    apart = any(np.ndim(given.get(part, 0)) for part in of_documents(model.parts))
    alike = None if apart else DuplicateGroups.of(statistics)
    problem = (
        EMState(statistics, prior)
        if alike is None
        else EMState(alike.statistics, prior, alike.repeats)
    )
    vector, history, converged = run_em(
        problem,
        problem.start(given),
        iterations=iterations,
        tolerance=tolerance,
        accelerate=accelerate,
        name=type(model).__name__,
    )
    trials = problem.totals(vector)[1]
    split = [problem.split(values) for values in (vector, trials)]
    for part, values in split[0].items():
        values[split[1][part] + prior.of(part)[1] == 0] = np.nan
    if alike is not None:
        split = [alike.spread(values) for values in split]
    return Estimate(*split, history, converged, prior, lambda: statistics)


def run_em(
    problem: EMState,
    start: np.ndarray,
    *,
    iterations: int,
    tolerance: float,
    accelerate: bool,
    name: str,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Repeat EM steps, or SQUAREM cycles if `accelerate`, until the likelihood hardly grows.

    The vector; [iterations + 1] the objective, which no EM step may lower, at the start and after
    each iteration; whether the last iteration gained less than the tolerance.
    """
    now = start
    following, value = problem.measured_step(now)
    history = [value]
    converged = False
    while not converged and len(history) <= iterations:
        if accelerate:
            new, following, value = squarem_step(problem, now, following)
        else:
            new = following
            following, value = problem.measured_step(new)
        size = max(abs(history[-1]), 1)
        if not value >= history[-1] - ROUNDING * size:
            raise InputError(
                f"the log-likelihood fell from {history[-1]:.12g} to {value:.12g}",
                field=name,
                expected="expectations that are the posteriors under the click probability",
            )
        converged = bool(value - history[-1] <= tolerance * size)
        if value >= history[-1]:
            now = new
        history.append(max(value, history[-1]))
    return now, np.array(history), converged


def squarem_step(
    problem: EMState, vector: np.ndarray, once: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """A SQUAREM cycle (Varadhan and Roland, 2008): extrapolate two EM steps, then do a third.

    If the result has a lower objective than the first EM step, it is the second EM step instead.
    `once` is an EM step from `vector`. Returns where the cycle ends, an EM step from there, and the
    objective there.
    """
    twice, safe = problem.measured_step(once)
    parts = blocks(len(vector))

    def of_block(block: slice) -> np.ndarray:
        moved, bent = _differences(vector[block], once[block], twice[block])
        weighed = problem.often[block] * np.stack([moved, bent])
        return (weighed * [moved, bent]).sum(1)

    squares = sum(in_order(of_block, parts))
    if squares[1]:
        length, far = max(np.sqrt(squares[0] / squares[1]), 1), np.empty_like(vector)

        def extrapolate(block: slice) -> None:
            moved, bent = _differences(vector[block], once[block], twice[block])
            away = vector[block] + 2 * length * moved + length**2 * bent
            # EM cannot leave 0 or 1. So a value extrapolated to or past them takes EM's own value.
            far[block] = np.where((away > 0) & (away < 1), away, twice[block])

        list(in_order(extrapolate, parts))
        far = problem.step(far)
        following, reached = problem.measured_step(far)
        if reached >= safe:
            return far, following, reached
    return twice, *problem.measured_step(twice)


def _differences(vector, once, twice) -> tuple[np.ndarray, np.ndarray]:
    """The first EM step, and by how much the second differs from it."""
    moved = once - vector
    return moved, twice - once - moved
